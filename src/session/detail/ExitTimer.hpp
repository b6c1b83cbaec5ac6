// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>

namespace taper::detail {

// Unless this object goes out of scope within `seconds`, calls `last_words` and ends the process
// with `code`.
class ExitTimer {
 public:
  ExitTimer(double seconds, int code, std::function<void()> last_words = {})
      : last_words_(std::move(last_words)),
        thread_([this, seconds, code] { watch(seconds, code); }) {}
  ~ExitTimer() {
    {
      const std::lock_guard lock(mutex_);
      over_ = true;
    }
    signal_.notify_all();
    thread_.join();
  }
  ExitTimer(const ExitTimer&) = delete;
  ExitTimer& operator=(const ExitTimer&) = delete;

 private:
  void watch(double seconds, int code) {
    std::unique_lock lock(mutex_);
    if (signal_.wait_for(lock, std::chrono::duration<double>(seconds), [this] { return over_; }))
      return;
    if (last_words_) last_words_();
    ::_exit(code);
  }

  std::function<void()> last_words_;
  std::mutex mutex_;
  std::condition_variable signal_;
  bool over_ = false;
  std::thread thread_;
};

}  // namespace taper::detail
