"""Other tools' optimisers as methods, with the defaults of each tool. Needs the extra `compare`.

    hpobench-ordered run --method hpobench_ordered.tuning.tools.optuna:TPE --suite othpo

Each module has the methods of one tool and imports it. What they reached on the suites of this
package is part of the reference results; `submissions/` describes how it was obtained.
"""
