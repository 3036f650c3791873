"""The one reader of earlier evaluations: tables, files of tables, and studies of Optuna."""
