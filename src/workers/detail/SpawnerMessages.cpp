// SPDX-License-Identifier: Apache-2.0
#include "workers/detail/SpawnerMessages.hpp"

#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "base/Bytes.hpp"

namespace taper::detail {
namespace {

constexpr std::size_t kMostDescriptors = 2;

void pack_texts(ByteWriter& out, const std::vector<std::string>& texts) {
  out.value(static_cast<std::int64_t>(texts.size()));
  for (const std::string& text : texts) out.text(text);
}

std::vector<std::string> unpack_texts(ByteReader& in) {
  std::vector<std::string> texts(static_cast<std::size_t>(in.value<std::int64_t>()));
  for (std::string& text : texts) text = in.text();
  return texts;
}

}  // namespace

std::string pack(const SpawnerRequest& request) {
  std::string bytes;
  ByteWriter out(bytes);
  out.value(request.order);
  out.value(request.pid);
  pack_texts(out, request.arguments);
  pack_texts(out, request.environment);
  out.text(request.log);
  return bytes;
}

SpawnerRequest unpack_request(const std::string& bytes) {
  SpawnerRequest request;
  ByteReader in(bytes);
  in.value(request.order);
  in.value(request.pid);
  request.arguments = unpack_texts(in);
  request.environment = unpack_texts(in);
  request.log = in.text();
  return request;
}

bool send_message(int socket, const std::string& bytes, const std::vector<int>& descriptors) {
  iovec part{const_cast<char*>(bytes.data()), bytes.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  alignas(cmsghdr) std::array<char, CMSG_SPACE(kMostDescriptors * sizeof(int))> control{};
  if (!descriptors.empty()) {
    message.msg_control = control.data();
    message.msg_controllen = CMSG_SPACE(descriptors.size() * sizeof(int));
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(descriptors.size() * sizeof(int));
    std::memcpy(CMSG_DATA(header), descriptors.data(), descriptors.size() * sizeof(int));
  }
  ssize_t sent = 0;
  do {
    sent = ::sendmsg(socket, &message, MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  return sent == static_cast<ssize_t>(bytes.size());
}

bool receive_message(int socket, std::string& bytes, std::vector<Handle>* descriptors) {
  ssize_t size = 0;
  do {  // the size of the next message; MSG_TRUNC gives it whatever the room
    size = ::recv(socket, nullptr, 0, MSG_PEEK | MSG_TRUNC);
  } while (size < 0 && errno == EINTR);
  if (size <= 0) return false;
  bytes.resize(static_cast<std::size_t>(size));
  iovec part{bytes.data(), bytes.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(kMostDescriptors * sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  do {
    size = ::recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
  } while (size < 0 && errno == EINTR);
  if (size <= 0) return false;
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr;
       header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(header) + i * sizeof(int), sizeof fd);
      Handle handle(fd);
      if (descriptors != nullptr) descriptors->push_back(std::move(handle));
    }
  }
  return true;
}

}  // namespace taper::detail
