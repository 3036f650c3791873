"""Papers that can be reproduced: each module exports `PAPERS`, a tuple."""
