// SPDX-License-Identifier: Apache-2.0
#include "kernels/embedding.hpp"

#include "kernels/CheckOp.hpp"
#include "kernels/reference/embedding.hpp"

using namespace taper;
using namespace taper::test;

TEST_CASE("embeddings are copied and their gradients added in order", "[embedding]") {
  check_compare(embedding_op());
}

TEST_CASE("gradients of the embedding", "[embedding]") {
  check_gradient(embedding_op());
}

TEST_CASE("reference embedding by hand", "[embedding][reference]") {
  const reference::Matrix table(3, 2, {1, 2, 3, 4, 5, 6});
  CHECK(reference::embed(table, {2, 0, 2}).data == reference::Vector{5, 6, 1, 2, 5, 6});
  CHECK(reference::embed_backward({3, 2, {1, 2, 3, 4, 5, 6}}, {2, 0, 2}, 3).data ==
        reference::Vector{3, 4, 0, 0, 6, 8});
}
