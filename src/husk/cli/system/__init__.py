"""Commands for an engine as a whole: what it is and has, who we are at registries, and what our own command offers
(`man`, completion). They ask the library (`husk.client`) and nothing else of Husk."""
