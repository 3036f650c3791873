"""Search spaces before and after an adjustment: tables 3 to 10 of Stoll et al. (2020), appendix C.

Each benchmark has the search space after the adjustment and, as `previous`, the one before it.
`fcn-a` and `fcn-b` are evaluated on the tables of `fcnet`, `nas-a` and `nas-b` on those of
`nas201`; `svm-a` and `svm-b` on the forests of `openml-svm`, `xgb-a` and `xgb-b` on those of
`openml-xgboost`.

Tables 3 to 10 are followed as printed, which differs from other sources in places:
    fcn-b: the paper also trains for 50 epochs before the adjustment and for 100 after it. The
        tables contain results after 100 epochs only, which are used in both steps.
    nas-a, nas-b: in table 1 and the paper's released code the two names are swapped. The operation
        that the code removes from the old space of table 6 is the 1x1 convolution, not average
        pooling.
    svm-a: in the released code degree and gamma are swapped: gamma is tuned before the adjustment
        and degree after it. If a step of table 7 lists only one of them, the other has the code's
        value: gamma 1, degree 3. A radial kernel has no degree, so tuning it in step 1 has no
        effect; neither have, in xgb-b, hyperparameters of trees with the linear booster.
    svm-a to xgb-b: some ranges extend a little beyond the evaluations that the forests were fitted
        to, down to subsample 0. There, trees are constant in the feature that they split on, which
        may be a ratio of two hyperparameters.
"""

from hpobench_ordered.benchmarks import openml_flows
from hpobench_ordered.benchmarks._adjustment import (
    Fixed,
    SpaceAdjustment,
    Steps,
    choice,
    integers,
    log_uniform,
    uniform,
)
from hpobench_ordered.benchmarks.openml_flows import SVM, XGBOOST
from hpobench_ordered.benchmarks.tabular import EDGES, FCNET, NAS201, OPERATIONS, name_edge
from hpobench_ordered.data.artifact import Artifact

STEP_1, STEP_2, STEPS_1_2 = Steps.STEP_1, Steps.STEP_2, Steps.STEPS_1_2

ACTIVATIONS = ("relu", "tanh")
WITHOUT_POOLING = tuple(operation for operation in OPERATIONS if operation != "avg-pool3x3")

OPENML_TASKS = ("3", "31", "37", "49", "3913", "3917", "3918", "9952", "10093", "10101")
"""OpenML tasks, ten as in the paper. Its code has fourteen to choose from; the Monk's problems and
Breast Cancer Wisconsin are left out."""
FLOW_SURROGATE = "forest"
"""Surrogate of the flows that best values are searched on."""
_FLOWS = {spec.name: spec for spec in openml_flows.SPECS}

FCN_A = SpaceAdjustment(
    name="fcn-a",
    table=3,
    summary="Two-layer networks: units go from 32 to 512, the batch size is no longer tuned "
    "(numbers are indices of the choices in fcnet).",
    base=FCNET,
    rows=(
        (STEP_1, Fixed("n_units_1", 1)),
        (STEP_1, Fixed("n_units_2", 1)),
        (STEP_1, integers("batch_size", 0, 3)),
        (STEPS_1_2, integers("dropout_1", 0, 2)),
        (STEPS_1_2, integers("dropout_2", 0, 2)),
        (STEPS_1_2, choice("activation_fn_1", *ACTIVATIONS)),
        (STEPS_1_2, choice("activation_fn_2", *ACTIVATIONS)),
        (STEPS_1_2, integers("init_lr", 0, 5)),
        (STEPS_1_2, Fixed("lr_schedule", "const")),
        (STEP_2, Fixed("n_units_1", 5)),
        (STEP_2, Fixed("n_units_2", 5)),
        (STEP_2, Fixed("batch_size", 1)),
    ),
)

FCN_B = SpaceAdjustment(
    name="fcn-b",
    table=4,
    summary="Two-layer networks: activations become tunable, the learning rate decays "
    "(numbers are indices of the choices in fcnet; 100 epochs in both steps).",
    base=FCNET,
    rows=(
        (STEP_1, Fixed("activation_fn_1", "tanh")),
        (STEP_1, Fixed("activation_fn_2", "tanh")),
        (STEP_1, Fixed("lr_schedule", "const")),
        (STEPS_1_2, integers("n_units_1", 0, 5)),
        (STEPS_1_2, integers("n_units_2", 0, 5)),
        (STEPS_1_2, integers("dropout_1", 0, 2)),
        (STEPS_1_2, integers("dropout_2", 0, 2)),
        (STEPS_1_2, integers("init_lr", 0, 5)),
        (STEPS_1_2, integers("batch_size", 0, 3)),
        (STEP_2, choice("activation_fn_1", *ACTIVATIONS)),
        (STEP_2, choice("activation_fn_2", *ACTIVATIONS)),
        (STEP_2, Fixed("lr_schedule", "cosine")),
    ),
)

NAS_A = SpaceAdjustment(
    name="nas-a",
    table=5,
    summary="Cells of convolutional networks: node 1 is added, with its three edges.",
    base=NAS201,
    rows=(
        (STEPS_1_2, choice(name_edge(0, 2), *OPERATIONS)),
        (STEPS_1_2, choice(name_edge(0, 3), *OPERATIONS)),
        (STEPS_1_2, choice(name_edge(2, 3), *OPERATIONS)),
        (STEP_2, choice(name_edge(0, 1), *OPERATIONS)),
        (STEP_2, choice(name_edge(1, 2), *OPERATIONS)),
        (STEP_2, choice(name_edge(1, 3), *OPERATIONS)),
    ),
    unlisted={name_edge(0, 1): "none", name_edge(1, 2): "none", name_edge(1, 3): "none"},
)

NAS_B = SpaceAdjustment(
    name="nas-b",
    table=6,
    summary="Cells of convolutional networks: average pooling is added to the operations.",
    base=NAS201,
    rows=(
        *((STEP_1, choice(name_edge(*nodes), *WITHOUT_POOLING)) for nodes in sorted(EDGES)),
        *((STEP_2, choice(name_edge(*nodes), *OPERATIONS)) for nodes in sorted(EDGES)),
    ),
)

SVM_A = SpaceAdjustment(
    name="svm-a",
    table=7,
    summary="Support vector machine: the kernel goes from radial to polynomial.",
    base=_FLOWS[SVM.name],
    rows=(
        (STEP_1, Fixed("kernel", "radial")),
        (STEP_1, integers("degree", 2, 5)),
        (STEPS_1_2, log_uniform("cost", 2**-10, 2**10)),
        (STEP_2, Fixed("kernel", "polynomial")),
        (STEP_2, log_uniform("gamma", 2**-5, 2**5)),
    ),
    unlisted={"gamma": 1, "degree": 3},
    tasks=OPENML_TASKS,
    surrogates=(FLOW_SURROGATE,),
    artifact=Artifact.packaged("svm-a"),
)

SVM_B = SpaceAdjustment(
    name="svm-b",
    table=8,
    summary="Support vector machine: the range of the cost becomes wider.",
    base=_FLOWS[SVM.name],
    rows=(
        (STEP_1, log_uniform("cost", 2**-5, 2**5)),
        (STEPS_1_2, Fixed("gamma", 1)),
        (STEPS_1_2, Fixed("degree", 5)),
        (STEPS_1_2, choice("kernel", "polynomial", "linear", "radial")),
        (STEP_2, log_uniform("cost", 2**-10, 2**10)),
    ),
    tasks=OPENML_TASKS,
    surrogates=(FLOW_SURROGATE,),
    artifact=Artifact.packaged("svm-b"),
)

XGB_A = SpaceAdjustment(
    name="xgb-a",
    table=9,
    summary="XGBoost: four hyperparameters of trees become tunable.",
    base=_FLOWS[XGBOOST.name],
    rows=(
        (STEP_1, Fixed("colsample_bytree", 1)),
        (STEP_1, Fixed("colsample_bylevel", 1)),
        (STEP_1, Fixed("min_child_weight", 1)),
        (STEP_1, Fixed("max_depth", 6)),
        (STEPS_1_2, Fixed("booster", "gbtree")),
        (STEPS_1_2, integers("nrounds", 1, 5000)),
        (STEPS_1_2, uniform("subsample", 0, 1)),
        (STEPS_1_2, log_uniform("eta", 2**-10, 2**0)),
        (STEPS_1_2, log_uniform("lambda", 2**-10, 2**10)),
        (STEPS_1_2, log_uniform("alpha", 2**-10, 2**10)),
        (STEP_2, uniform("colsample_bytree", 0, 1)),
        (STEP_2, uniform("colsample_bylevel", 0, 1)),
        (STEP_2, log_uniform("min_child_weight", 2**0, 2**7)),
        (STEP_2, integers("max_depth", 1, 15)),
    ),
    tasks=OPENML_TASKS,
    surrogates=(FLOW_SURROGATE,),
    artifact=Artifact.packaged("xgb-a"),
)

XGB_B = SpaceAdjustment(
    name="xgb-b",
    table=10,
    summary="XGBoost: trees become deeper, with other fixed values around them.",
    base=_FLOWS[XGBOOST.name],
    rows=(
        (STEP_1, Fixed("colsample_bytree", 1)),
        (STEP_1, Fixed("colsample_bylevel", 1)),
        (STEP_1, Fixed("min_child_weight", 1)),
        (STEP_1, Fixed("max_depth", 6)),
        (STEPS_1_2, choice("booster", "gblinear", "gbtree")),
        (STEPS_1_2, integers("nrounds", 1, 5000)),
        (STEPS_1_2, uniform("subsample", 0, 1)),
        (STEPS_1_2, log_uniform("eta", 2**-10, 2**0)),
        (STEPS_1_2, log_uniform("lambda", 2**-10, 2**10)),
        (STEPS_1_2, log_uniform("alpha", 2**-10, 2**10)),
        (STEP_2, Fixed("colsample_bytree", 1)),
        (STEP_2, Fixed("colsample_bylevel", 0.5)),
        (STEP_2, Fixed("min_child_weight", 10)),
        (STEP_2, Fixed("max_depth", 10)),
    ),
    tasks=OPENML_TASKS,
    surrogates=(FLOW_SURROGATE,),
    artifact=Artifact.packaged("xgb-b"),
)

FINITE = (FCN_A, FCN_B, NAS_A, NAS_B)
"""Adjustments whose optima are looked up."""
SEARCHED = (SVM_A, SVM_B, XGB_A, XGB_B)
"""Adjustments whose best values are searched beforehand and stored in an artifact."""
SPECS = tuple(adjustment.spec() for adjustment in (*FINITE, *SEARCHED))
SUITES = tuple(("adjustments", spec.name) for spec in SPECS)
