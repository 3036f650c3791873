"""Tables, figures and a page of results: `hbo.report` and `hbo.plots`."""
