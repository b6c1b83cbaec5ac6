// SPDX-License-Identifier: Apache-2.0
//
// From prompts to figures, the one way for `taper eval` and for the evaluations of runs. It has a
// module of its own because it needs the generator and the judge, which know nothing of each other
// (rollout, reward), and is needed by infer and train.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "data/PromptSource.hpp"
#include "engine/SamplingOptions.hpp"
#include "engine/StopMatcher.hpp"
#include "instance/ModelFiles.hpp"
#include "reward/EvalStatistics.hpp"
#include "reward/Judge.hpp"
#include "rl/SampleSet.hpp"
#include "rollout/Generator.hpp"
#include "session/Ranks.hpp"

namespace taper {

// Prompts that are answered and judged together.
struct EvaluationSet {
  std::string name;  // of its figures in a run; empty: the plain set
  std::vector<Prompt> prompts;
  int samples = 1;  // responses per prompt
  int max_new_tokens = 0;
  SamplingOptions sampling;  // whatever its purpose, it is evaluation
  Judge* judge = nullptr;    // of the responses
};

// What the responses to a set are worth.
struct SetFigures {
  int samples = 1;    // responses per prompt
  EvalScores scores;  // of the responses that no reward dropped and the prompts that have some
  std::map<std::string, EvalScores> sources;  // likewise, by Prompt::source
  double mean_length = 0;                     // tokens per response, of all
  int truncated = 0;                          // responses that reached the length limit, of all
};

// The scores of a set with so many samples that a run records: avg@k and, for more than one sample,
// pass@j and maj@k, without pass@1, which is avg@k if scores are 0 or 1.
std::vector<std::string> recorded_scores(int samples);

// The figures as a run records them: of a named set "val/<set>/<score>" for the recorded scores
// that there are (dropped responses may leave too few for pass@j), and the mean length; of the
// plain set, whose name is empty, the mean score alone.
MetricValues recorded_figures(const std::string& set, const SetFigures& figures);

// Answers sets with a model and has the answers judged, by the judge of each set.
class Evaluator {
 public:
  // Whether to stop, asked of all ranks of a group together, which get one answer.
  using Stop = std::function<bool(const Group&)>;

  // Refers to all but `stops`: when responses end.
  Evaluator(const ModelFiles& files, const Ranks& ranks, StopOptions stops);

  // The responses that ended on this rank, not judged yet, but commands among the rewards have been
  // asked about each as soon as it ended. The generator may be null on ranks that do not generate.
  // Nothing if `stop` ends the generation. Then the generator is not needed any more: its memory
  // may go to models among the rewards. Collective over the world.
  std::optional<std::vector<Sample>> answer(const EvaluationSet& set, Generator* generator,
                                            const Stop& stop = {});

  // Judges what answer() gave of the set. The same figures on all ranks; nothing if `stop` ends the
  // wait for commands. Collective over the world.
  std::optional<SetFigures> judge(const EvaluationSet& set, std::vector<Sample> answers,
                                  const Stop& stop = {});

 private:
  // Collective over the ranks of the generator.
  std::vector<Completion> generate(const EvaluationSet& set, Generator& generator,
                                   const Stop& stop);
  SetFigures figures_of(const EvaluationSet& set, SampleSet& samples) const;

  const ModelFiles& files_;
  const Ranks& ranks_;
  StopOptions stops_;
};

}  // namespace taper
