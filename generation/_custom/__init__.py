"""Any model on any data over growing training sets."""
