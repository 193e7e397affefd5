"""Tools that the commands for people share: to read a line, to ask an engine, and to show answers.

command, group       how a line is read: as docker's client reads it
engine               how an engine is asked, and what becomes of failures
writing, tables, templates, words, progress
                     how answers are shown: to people at a terminal, to programs behind a pipe
"""
