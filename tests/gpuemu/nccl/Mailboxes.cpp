// SPDX-License-Identifier: Apache-2.0
#include "gpuemu/nccl/Mailboxes.hpp"

#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>

namespace taper::gpuemu {

Mailboxes::Mailboxes(const std::string& name, int ranks, int rank)
    : ranks_(ranks),
      rank_(rank),
      size_(sizeof(Memory) + sizeof(Mailbox) * static_cast<std::size_t>(ranks) * ranks) {
  const int file = ::shm_open(name.c_str(), O_CREAT | O_RDWR, 0600);
  if (file < 0 || ::ftruncate(file, static_cast<off_t>(size_)) != 0)
    throw std::runtime_error("no shared memory " + name + ": " + std::strerror(errno));
  void* p = ::mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  ::close(file);
  if (p == MAP_FAILED) throw std::runtime_error("cannot map " + name);
  memory_ = static_cast<Memory*>(p);  // zero: nobody has arrived, all mailboxes are free
  ++memory_->arrived;
  while (memory_->arrived < ranks) ::sched_yield();
  ::shm_unlink(name.c_str());  // all have it; nothing is left if one of them dies
}

Mailboxes::~Mailboxes() {
  ::munmap(memory_, size_);
}

std::size_t Mailboxes::try_send(int to, const char* data, std::size_t size) {
  Mailbox& mailbox = box(rank_, to);
  if (mailbox.bytes != 0) return 0;
  const std::size_t now = std::min(size, sizeof mailbox.letter);
  std::memcpy(mailbox.letter, data, now);
  mailbox.bytes = static_cast<std::uint32_t>(now);
  return now;
}

// A letter never is longer than what is still wanted: both sides name the same size.
std::size_t Mailboxes::try_receive(int from, char* data, std::size_t size) {
  Mailbox& mailbox = box(from, rank_);
  const std::size_t now = mailbox.bytes;
  if (now == 0) return 0;
  if (now > size) throw std::runtime_error("a rank sends more than another one receives");
  std::memcpy(data, mailbox.letter, now);
  mailbox.bytes = 0;
  return now;
}

}  // namespace taper::gpuemu
