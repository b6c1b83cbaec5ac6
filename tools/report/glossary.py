# SPDX-License-Identifier: Apache-2.0
"""The words of a report that a new reader may not know; the end of each page."""
from report.pages import Table

ALWAYS = {
    "rank": "one process of the job, on a GPU of its own or on some CPU cores",
    "TP": "tensor parallelism: so many ranks hold one copy of the model together and compute each"
    " token together",
    "layout, TPxDP": "how the ranks are grouped for generation: 1x2 is degree 1, two replicas "
    "(each rank has a copy of its own), 2x1 is degree 2, one replica; 2+1+1 is groups of these "
    "degrees",
}
RUN = {
    "iteration": "generation of responses, their rewards, and the training on them",
    "rollout": "the responses of an iteration; the rollout policy is the model as it was when it "
    "wrote them",
    "held out": "kept apart from the training, to see what the model has learned beyond it",
}
FINE_TUNING = {
    "step": "one update of the weights, on a batch of examples",
    "loss": "for fine-tuning on text the mean of -log(probability) of each token to learn, in "
    "nat; for pairs the same of preferring the better response",
    "held out": RUN["held out"],
}
UPDATE = {
    "KL": "how different the token probabilities of two models are: 0 is equal",
    "ratios clipped": "share of tokens whose probability has moved so far since the rollout that "
    "they teach no more",
}
ADAPTIVE = {
    "static layout": "one that stays as it is for the whole run",
    "adaptive": "the planner changes the layout within a generation, when few responses are"
    " left",
    "consultation": "a moment at which the planner looks at the sequences left and may "
    "propose a change; they are rare while no change can pay",
    "switch": "a change of the layout, or a repack",
    "repack": "the layout stays, but sequences are dealt out anew to its replicas, so that all "
    "have equally many",
    "replay": "the generation computed once more from its true response lengths and the step "
    "times of the profile, with the same or with other layouts: what they would have taken on a "
    "quiet machine",
    "oracle": "the best choice among uniform layouts, with at most two changes, for someone who knew "
    "all response lengths beforehand",
    "false trigger": "a switch after which the generation took longer, in the replay, than "
    "without it",
    "forecast": "when the planner expected the end of the generation: a mean and a range that "
    "should hold it 80 % of the time",
}
SCALING = {
    "speed-up": "throughput relative to the fewest ranks of the study",
    "efficiency": "speed-up divided by the factor of ranks; 100 % is ideal",
}
PROFILE = {
    "latency profile": "measured times of single steps for each degree, from which the layout "
    "policy computes",
    "decode step": "one new token for each sequence of a replica",
    "positions": "tokens of a sequence so far, prompt and response",
    "interpolation": "how far the time between two measured points, drawn from these, is from one"
    " measured there",
    "meeting": "all ranks wait for each other before a change of layout",
}
PHASES = {
    "gen": "writing the responses",
    "reward": "judging the responses",
    "reward_model": "judging the responses by reward models, where models are on different ranks",
    "ref": "log-probabilities of the responses by the reference model",
    "values": "values of the tokens by the critic",
    "old_log_prob": "log-probabilities of the responses by the model before the update",
    "adv": "advantages: how much better each response is than expected; ranks that are early wait"
    " here for the others",
    "update_critic": "training of the critic",
    "update_actor": "training of the model (forward, backward, optimizer), and its weights to the"
    " generation layout",
    "wait": "waiting for models on other ranks, and bringing what they have found to all",
    "publish": "weights to the generation layout",
    "output": "writing the rollouts",
    "testing": "evaluation on held-out prompts",
    "save_checkpoint": "writing a checkpoint",
    "other": "what the phases leave of the iteration; where runs are compared also phases below "
    "0.5 % in all of them",
}
ADAPTIVE_PICTURES = {"layouts", "generation_time", "regret", "forecasts"}


def glossary(pictures: list[str], phases: list[str]) -> Table:
    """The words that pages with these pictures and phases of an iteration use."""
    shown = set(pictures)
    words = dict(ALWAYS)
    if "profile" in shown:
        words |= PROFILE
    else:
        words |= FINE_TUNING if "fine_tuning" in shown else {}
        words |= RUN if phases or shown - {"fine_tuning"} else {}
    if "scaling" in shown:
        words |= SCALING
    if "update" in shown:
        words |= UPDATE
    if shown & ADAPTIVE_PICTURES:
        words |= ADAPTIVE
    words |= {f"{name} (phase)": PHASES[name] for name in phases if name in PHASES}
    return Table("Glossary", [["word", "meaning"], *([k, v] for k, v in words.items())], False)
