// SPDX-License-Identifier: Apache-2.0
//
// Bytes between the processes of one host, through shared memory: a mailbox from each rank to each,
// which holds one letter at a time.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

namespace taper::gpuemu {

class Mailboxes {
 public:
  static constexpr int kMostRanks = 16;

  // Waits until all ranks have come. `name`: of the memory, known to these ranks alone.
  Mailboxes(const std::string& name, int ranks, int rank);
  Mailboxes(const Mailboxes&) = delete;
  Mailboxes& operator=(const Mailboxes&) = delete;
  ~Mailboxes();

  int ranks() const { return ranks_; }
  int rank() const { return rank_; }

  // Moves up to `size` bytes if the mailbox is free (has a letter); returns how many.
  std::size_t try_send(int to, const char* data, std::size_t size);
  std::size_t try_receive(int from, char* data, std::size_t size);

 private:
  struct Mailbox {
    std::atomic<std::uint32_t> bytes;  // of the letter; 0: free
    char letter[65532];
  };
  struct Memory {
    std::atomic<int> arrived;
    Mailbox boxes[];
  };
  Mailbox& box(int from, int to) const { return memory_->boxes[from * ranks_ + to]; }

  int ranks_, rank_;
  std::size_t size_;
  Memory* memory_ = nullptr;
};

}  // namespace taper::gpuemu
