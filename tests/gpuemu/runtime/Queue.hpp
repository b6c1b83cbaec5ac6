// SPDX-License-Identifier: Apache-2.0
//
// Streams, events and graphs. Operations are queued and run as late as the host's waits allow, in
// an order that the seed chooses among those that streams and events permit.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

namespace taper::gpuemu {

// For each stream, up to which of its operations something has happened before.
class Clock {
 public:
  void join(const Clock& other);
  std::uint32_t at(std::uint32_t stream) const { return stream < seen_.size() ? seen_[stream] : 0; }
  void set(std::uint32_t stream, std::uint32_t operation);

 private:
  std::vector<std::uint32_t> seen_;
};

// What an operation does. begin() is called when the operation is queued (again for each launch of
// a graph); what it returns runs later, with the operation's number.
struct Work {
  std::string name;
  std::function<std::function<void(std::uint32_t number)>()> begin;
  bool runs_at_once = false;  // not as late as possible: other processes may wait for it
};

struct Graph {
  struct Node {
    Work work;
    std::uint32_t branch = 0;  // the stream that it was captured from
    std::vector<std::size_t> after;
  };
  std::vector<Node> nodes;
};

struct Stream {
  std::uint32_t number = 0;
  bool is_blocking = true;           // waits for the legacy default stream and lets it wait
  std::uint32_t last = 0;            // its newest operation
  std::vector<std::uint32_t> waits;  // operations that its next one has to wait for
  // While it is captured:
  Graph* capture = nullptr;
  bool is_capture_origin = false, is_capture_broken = false;
  std::vector<std::size_t> last_nodes;
};

struct Event {
  std::uint32_t operation = 0;
  std::shared_ptr<double> seconds = std::make_shared<double>(0.0);
  Graph* capture = nullptr;
  std::vector<std::size_t> nodes;
};

struct GraphExec {
  Graph graph;
  std::map<std::uint32_t, std::uint32_t> streams;  // a number for each branch, for clocks
};

class Queue {
 public:
  explicit Queue(std::mt19937& random);

  Stream* create_stream(bool is_blocking);
  void destroy_stream(Stream* stream);
  Stream& legacy() { return *legacy_; }
  bool is_any_captured() const { return captured_ > 0; }

  // Queues the work, or adds it to the graph that the stream is captured into. Returns its number,
  // 0 if captured.
  std::uint32_t add(Stream& stream, Work work);
  void record(Event& event, Stream& stream);
  void wait(Stream& stream, const Event& event);
  // Runs until the operation is over; the host has then waited for it.
  void finish(std::uint32_t operation);
  void finish(Stream& stream) { finish(stream.last); }
  void finish_all();
  // The lowest number of an operation that has not run; that of the next one if all have.
  std::uint32_t oldest_pending() const {
    return pending_.empty() ? static_cast<std::uint32_t>(places_.size()) : pending_.begin()->first;
  }
  bool is_done(std::uint32_t operation) const { return pending_.count(operation) == 0; }

  // Invalidates the captures of all streams that wait for the default stream; false if there is
  // none.
  bool break_captures();
  void begin_capture(Stream& stream);
  // nullptr if the capture was broken or has branches that were not joined.
  Graph* end_capture(Stream& stream, bool& is_unjoined);
  void launch(GraphExec& graph, Stream& stream);

  // Whether operation `before` has happened before the one that runs now.
  bool is_ordered(std::uint32_t before) const;

 private:
  struct Operation {
    std::string name;
    Clock clock;
    std::vector<std::uint32_t> waits;
    std::function<void(std::uint32_t)> run;
  };
  struct Place {
    std::uint32_t stream, in_stream;
  };

  std::uint32_t push(std::uint32_t stream_number, std::vector<std::uint32_t> waits,
                     const Work& work);
  bool is_ready(const Operation& operation) const;
  void run(std::uint32_t number);
  void run_one();
  void run_some();
  void run_until(std::uint32_t operation);

  std::mt19937& random_;
  std::vector<std::unique_ptr<Stream>> streams_;
  Stream* legacy_ = nullptr;
  std::uint32_t next_stream_ = 1;
  std::map<std::uint32_t, Operation> pending_;
  std::map<std::uint32_t, Clock> clocks_;  // of the newest operations, for those that wait for them
  std::vector<Place> places_{{0, 0}};      // of all operations
  std::vector<std::uint32_t> in_stream_;   // operations of each stream so far
  Clock host_, running_;
  int captured_ = 0;
};

}  // namespace taper::gpuemu
