# SPDX-License-Identifier: Apache-2.0
"""What each picture shows, in a sentence for those who see it first. By name of the picture."""

CAPTIONS = {
    "reward": "The mean reward of the responses of each iteration (pale) and its moving average; "
    "diamonds are scores on held-out prompts, which the training never uses.",
    "evaluation": "The mean score of responses to held-out prompts, which the training never "
    "uses, by the number of iterations trained before.",
    "evaluation_sets": "Scores on each set of held-out prompts: avg@k is the mean score of k "
    "responses to a prompt, pass@k the share of prompts with a right one among k, maj@k the share"
    " whose most frequent answer is right.",
    "fine_tuning": "How badly the model predicts the examples that it learns from (training) and "
    "those kept apart (held out): lower is better, and a held-out loss that rises while the "
    "training loss falls tells of overfitting.",
    "response_length": "How long the responses of each iteration are, in tokens, and below it "
    "which share of them was cut at the limit (Rollout/Max New Tokens).",
    "length_histogram": "The share of the responses in each bar, so that all bars of a colour add"
    " up to 100 %, and below it the median (p50), the length that 1 % of the responses exceed "
    "(p99) and the longest.",
    "entropy": "How undecided the model is about the next token: near 0 it always says the same.",
    "update": "How far each iteration moves the model: the KL divergences estimate how far it is "
    "from the one that wrote the responses (an estimate by samples, which can fall below 0) and, "
    "where there is one, from the reference model.",
    "step_time": "What the seconds of an iteration are spent on; the phases are explained in the "
    "glossary. Where hatching is drawn, it spans the fastest to the slowest rank; the lower panel, "
    "if there is one, shows that difference for the phases that differ most.",
    "throughput": "Tokens of prompts and responses by the seconds of the whole iteration, for "
    "each rank, and the largest memory of a rank so far.",
    "speculation": "Above: how many tokens a sequence gets in a step that decodes, by the number "
    "of sequences in the step; 1 without drafts. Below: which share of the guessed tokens was "
    "right, by where they came from.",
    "calls": "Two iterations in the middle of the run: each bar is one piece of work of a model, as "
    "high as the ranks that it is on. Gaps are ranks that wait, work that belongs to no model, or "
    "early work.",
    "layouts": "How many responses were still being written within single generations (dots: the "
    "moments at which the planner was consulted; the straight lines between them are no "
    "measurement), over the layout of the moment; numbers mark changes, white ones were not "
    "carried out.",
    "generation_time": "Predicted against measured times: points on the dashed diagonal are "
    "exact, those below it took longer than predicted.",
    "regret": "What layouts were worth, by replay: every curve is computed with the step times of"
    " the profile and the true response lengths, so that the noise of the machine is in none of "
    "them; below 0 is faster than the best static layout, and the lower panel sums up the "
    "seconds.",
    "forecasts": "How often a generation ended before the planner's forecasts of its end (bars) "
    "and how often that should be (lines). The end is the one without the changes of layout that "
    "came after a forecast: replayed, times how much slower the machine was than the replay. The "
    "forecasts of one generation err alike, so that few generations say little.",
    "scaling": "Left: tokens of prompts and responses per second, all ranks together, on "
    "logarithmic axes; the dashed line is ideal: twice the ranks, twice the speed. Right: the "
    "throughput of a rank as a share of that on the fewest ranks.",
    "profile": "Measured times of steps that every layout decision rests on: where the curve of "
    "one degree in the upper right panel is below the others, layouts of that degree are the "
    "fastest for so many sequences.",
}
