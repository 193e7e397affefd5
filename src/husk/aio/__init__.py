"""Helpers for asyncio and threads: everything that waits or blocks goes through them.

tasks        background work with an owner: the one place that starts asyncio tasks
threads      the threads in which blocking work runs, by purpose; `thread_pool` is what they are made of
lone_thread  a thread for one piece of work that changes the thread itself
loop_thread  a thread with an event loop of its own, for an engine inside a program
once         a part that is made when it is first needed
stalls       a watch on the event loop, which names callbacks that hold it
listening    what servers on Unix sockets are told about the socket's file
"""
