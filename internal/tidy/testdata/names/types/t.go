package types //tidy:ok to show that a waiver works
