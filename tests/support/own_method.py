"""A method of a user's own, of the two functions that it must have."""


class Mine:
    def __init__(self, space, rng):
        self.space, self.rng = space, rng

    def ask(self):
        return self.space.sample(self.rng)

    def tell(self, config, loss): ...
