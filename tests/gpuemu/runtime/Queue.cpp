// SPDX-License-Identifier: Apache-2.0
#include "gpuemu/runtime/Queue.hpp"

#include <algorithm>
#include <chrono>
#include <set>

#include "gpuemu/ptx/Ptx.hpp"

namespace taper::gpuemu {
namespace {

double now_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void append(std::vector<std::size_t>& to, const std::vector<std::size_t>& from) {
  for (std::size_t n : from) {
    if (std::find(to.begin(), to.end(), n) == to.end()) to.push_back(n);
  }
}

}  // namespace

void Clock::join(const Clock& other) {
  if (other.seen_.size() > seen_.size()) seen_.resize(other.seen_.size());
  for (std::size_t k = 0; k < other.seen_.size(); ++k)
    seen_[k] = std::max(seen_[k], other.seen_[k]);
}

void Clock::set(std::uint32_t stream, std::uint32_t operation) {
  if (stream >= seen_.size()) seen_.resize(stream + 1);
  seen_[stream] = operation;
}

Queue::Queue(std::mt19937& random) : random_(random) {
  streams_.push_back(std::make_unique<Stream>());
  legacy_ = streams_.back().get();
}

Stream* Queue::create_stream(bool is_blocking) {
  streams_.push_back(std::make_unique<Stream>());
  Stream* s = streams_.back().get();
  s->number = next_stream_++;
  s->is_blocking = is_blocking;
  return s;
}

void Queue::destroy_stream(Stream* stream) {
  finish(*stream);
  std::erase_if(streams_, [&](const auto& s) { return s.get() == stream; });
}

std::uint32_t Queue::push(std::uint32_t stream_number, std::vector<std::uint32_t> waits,
                          const Work& work) {
  const auto number = static_cast<std::uint32_t>(places_.size());
  if (stream_number >= in_stream_.size()) in_stream_.resize(stream_number + 1);
  const std::uint32_t in_stream = ++in_stream_[stream_number];
  Operation o;
  o.name = work.name;
  o.clock = host_;
  for (std::uint32_t w : waits) {
    // Of operations that the host has waited for, its own clock knows.
    if (const auto found = clocks_.find(w); found != clocks_.end()) o.clock.join(found->second);
  }
  o.clock.set(stream_number, in_stream);
  o.waits = std::move(waits);
  o.run = work.begin();
  places_.push_back({stream_number, in_stream});
  clocks_[number] = o.clock;
  pending_[number] = std::move(o);
  return number;
}

std::uint32_t Queue::add(Stream& stream, Work work) {
  if (stream.capture != nullptr) {
    stream.capture->nodes.push_back({std::move(work), stream.number, stream.last_nodes});
    stream.last_nodes = {stream.capture->nodes.size() - 1};
    return 0;
  }
  std::vector<std::uint32_t> waits = std::move(stream.waits);
  stream.waits.clear();
  waits.push_back(stream.last);
  if (&stream == legacy_) {
    for (const auto& s : streams_) {
      if (s->is_blocking) waits.push_back(s->last);
    }
  } else if (stream.is_blocking) {
    waits.push_back(legacy_->last);
  }
  stream.last = push(stream.number, std::move(waits), work);
  const std::uint32_t number = stream.last;
  if (work.runs_at_once) run_until(number);
  run_some();
  return number;
}

void Queue::record(Event& event, Stream& stream) {
  event.capture = stream.capture;
  event.nodes = stream.last_nodes;
  if (stream.capture != nullptr) return;
  // An operation of its own: waits of the stream that come before belong to it.
  event.operation = add(stream, {"event", [seconds = event.seconds] {
                                   return [seconds](std::uint32_t) { *seconds = now_seconds(); };
                                 }});
}

void Queue::wait(Stream& stream, const Event& event) {
  if (event.capture == nullptr) {
    stream.waits.push_back(event.operation);
    return;
  }
  if (stream.capture == nullptr) {
    stream.capture = event.capture;
    stream.is_capture_origin = false;
    stream.last_nodes.clear();
    ++captured_;
  }
  append(stream.last_nodes, event.nodes);
}

bool Queue::is_ready(const Operation& o) const {
  return std::all_of(o.waits.begin(), o.waits.end(), [&](std::uint32_t w) { return is_done(w); });
}

void Queue::run(std::uint32_t number) {
  Operation o = std::move(pending_.at(number));
  running_ = o.clock;
  o.run(number);
  running_ = {};
  pending_.erase(number);
}

// One of the oldest operations that wait for nothing.
void Queue::run_one() {
  std::vector<std::uint32_t> ready;
  for (const auto& [number, o] : pending_) {
    if (is_ready(o)) ready.push_back(number);
    if (ready.size() == 8) break;
  }
  run(ready[random_() % ready.size()]);
}

// A device runs on while the host queues more, some of the time.
void Queue::run_some() {
  while (!pending_.empty() && random_() % 2 == 0) run_one();
}

void Queue::run_until(std::uint32_t operation) {
  while (!is_done(operation)) run_one();
}

void Queue::finish(std::uint32_t operation) {
  run_until(operation);
  if (const auto found = clocks_.find(operation); found != clocks_.end()) host_.join(found->second);
  // Clocks of what is done and known to the host are needed no more.
  if (pending_.empty()) {
    std::set<std::uint32_t> newest;
    for (const auto& s : streams_) newest.insert(s->last);
    std::erase_if(clocks_, [&](const auto& c) {
      return newest.count(c.first) == 0 &&
             host_.at(places_[c.first].stream) >= places_[c.first].in_stream;
    });
  }
}

void Queue::finish_all() {
  while (!pending_.empty()) finish(std::prev(pending_.end())->first);
  for (const auto& s : streams_) finish(s->last);
}

bool Queue::break_captures() {
  bool has_broken = false;
  for (const auto& s : streams_) {
    if (s->capture == nullptr || !s->is_blocking) continue;
    has_broken = s->is_capture_broken = true;
  }
  return has_broken;
}

void Queue::begin_capture(Stream& stream) {
  stream.capture = new Graph;
  stream.is_capture_origin = true;
  stream.is_capture_broken = false;
  stream.last_nodes.clear();
  ++captured_;
}

Graph* Queue::end_capture(Stream& stream, bool& is_unjoined) {
  std::unique_ptr<Graph> graph(stream.capture);
  bool is_broken = stream.is_capture_broken;
  // What other streams did last must lie before what the origin has come to.
  std::set<std::size_t> reached;
  std::vector<std::size_t> open = stream.last_nodes;
  while (!open.empty()) {
    const std::size_t n = open.back();
    open.pop_back();
    if (reached.insert(n).second) append(open, graph->nodes[n].after);
  }
  is_unjoined = false;
  for (const auto& s : streams_) {
    if (s->capture != graph.get()) continue;
    is_broken = is_broken || s->is_capture_broken;
    for (std::size_t n : s->last_nodes) is_unjoined = is_unjoined || reached.count(n) == 0;
    s->capture = nullptr;
    s->last_nodes.clear();
    --captured_;
  }
  return is_broken || is_unjoined ? nullptr : graph.release();
}

void Queue::launch(GraphExec& exec, Stream& stream) {
  std::vector<std::uint32_t> numbers;
  std::vector<std::uint32_t> before = stream.waits;
  stream.waits.clear();
  before.push_back(stream.last);
  if (stream.is_blocking) before.push_back(legacy_->last);
  for (const Graph::Node& node : exec.graph.nodes) {
    std::uint32_t& branch = exec.streams[node.branch];
    if (branch == 0) branch = next_stream_++;
    std::vector<std::uint32_t> waits = before;
    for (std::size_t n : node.after) waits.push_back(numbers[n]);
    numbers.push_back(push(branch, std::move(waits), node.work));
    if (node.work.runs_at_once) run_until(numbers.back());
  }
  stream.waits = numbers;
  add(stream, {"end of graph", [] { return [](std::uint32_t) {}; }});
}

bool Queue::is_ordered(std::uint32_t before) const {
  const Place& p = places_.at(before);
  return running_.at(p.stream) >= p.in_stream;
}

}  // namespace taper::gpuemu
