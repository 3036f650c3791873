"""A search of scikit-learn's kind that starts from earlier ones. Needs the extra `sklearn`."""

from hpobench_ordered.data.extras import import_extra

# Before any other import of it: scikit-learn changes the global random state when it is imported.
import_extra(
    "sklearn.model_selection", package="scikit-learn", extra="sklearn", purpose="OrderedSearchCV"
)

from hpobench_ordered.tuning.sklearn.search import OrderedSearchCV  # noqa: E402

__all__ = ["OrderedSearchCV"]
