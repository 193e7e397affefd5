"""The worker process that brings files of a repository into a build: git, run where it sees nothing of the host.

It is run as root, so that the files are root's, and has none of root's powers. All processes that it starts end with
it, and it ends with the daemon. A few kilobytes of trees that name each other may be billions of files: memory, bytes
and files have limits.
"""

import os
import resource
import shutil
import signal

from husk.builder.store.workers import git_view
from husk.builder.store.workers.git_program import Git, GitFailed, environment, without_password, write_known_hosts
from husk.builder.store.workers.git_view import PATH, TREE, WORK
from husk.builder.store.workers.jobs import GitJob
from husk.kernel import jail
from husk.kernel.trees import tree_size
from husk.storage.workers.answers import Answer, Failed, FileContent, Invalid
from husk.storage.workers.caller import Caller
from husk.text.urls import split_url

_REPOSITORY = f"{WORK}/repository"
_WHOLE = f"{TREE}/.husk-whole-tree"
_FOUND = "refs/husk/found"
_PACKAGES = {"git": "git", "ssh": "openssh-client"}


def main(job: GitJob, caller: Caller) -> None:
    if missing := missing_program(job.access.remote):
        caller.answer(Failed(missing))
        return
    git_view.show(job.view, job.work, job.tree)
    jail.own_processes()
    ours = os.pidfd_open(os.getpid())
    child = os.fork()
    if child == 0:
        try:
            jail.end_with(ours)
            jail.give_up_powers()
            _limit(job.limit, job.memory)
            caller.answer(answer_to(job))
        finally:
            os._exit(0)
    least = _free() - job.limit if job.limit else 0
    files = _fewest_files()
    if caller.wait(os.pidfd_open(child), lambda: _free() < least or os.statvfs(WORK).f_favail < files):
        os.kill(child, signal.SIGKILL)  # and all that it has started
        caller.answer(_too_large(job))


def _free() -> int:
    """The bytes that the disk has for what git writes, which is more than the files."""
    found = os.statvfs(WORK)
    return found.f_bavail * found.f_frsize


def _fewest_files() -> int:
    """Return the number of files to leave room for on the disk: others need that; 0 if it does not count files."""
    found = os.statvfs(WORK)
    return min(found.f_files // 20, found.f_favail // 2)


def _too_large(job: GitJob) -> Invalid:
    shown = without_password(job.access.remote, job.access.remote)
    return Invalid(f"{shown} is larger than what the disk has room for: no space left on device")


def missing_program(remote: str, path: str = PATH) -> str:
    """Return a message that says what to install, if a program is not there; else an empty one."""
    # `me@there:path` is ssh's; `name::address` is for a helper of git's, which is refused.
    over_ssh = split_url(remote).scheme == "ssh" if "://" in remote else "::" not in remote
    for program in ("git", "ssh") if over_ssh else ("git",):
        if shutil.which(program, path=path) is None:
            package = _PACKAGES[program]
            return f"the program {program} is not on this host, and {remote} needs it: install the package {package}"
    return ""


def _limit(largest_file: int, memory: int) -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if memory:
        resource.setrlimit(resource.RLIMIT_DATA, (memory, memory))
    if largest_file:
        resource.setrlimit(resource.RLIMIT_FSIZE, (largest_file, largest_file))


def answer_to(job: GitJob) -> Answer:
    access = job.access
    git = Git(environment(access))
    shown = without_password(access.remote, access.remote)
    try:
        write_known_hosts(access)
        if not job.commit:
            symbolic = [] if job.names != ["HEAD"] else ["--symref"]
            return FileContent(git.run("ls-remote", *symbolic, "--", access.remote, *job.names))
        commit = _Checkout(job, git).run()
        if job.limit and tree_size(TREE) > job.limit:
            return _too_large(job)
        return FileContent(commit.encode())
    except GitFailed as error:
        told = without_password(str(error), access.remote)
        return Invalid(f"failed to fetch remote {shown}: git stderr: {told}")
    except OSError as error:
        return Failed(f"{shown}: {error}")


class _Checkout:
    def __init__(self, job: GitJob, git: Git) -> None:
        self._job = job
        # What is kept is kept of all of a repository, not of one directory.
        self._keeps = job.keep and not job.directory
        repository = f"{TREE}/.git" if self._keeps else _REPOSITORY
        self._tree = _WHOLE if job.directory else TREE
        os.makedirs(self._tree, exist_ok=True)
        self._git = git.at(repository, self._tree)

    def run(self) -> str:
        """Bring the files here; the commit that they are of, by git's own computation and nobody's word."""
        git, wanted, said = self._git, self._job.commit, self._job.said
        git.run("init", "--quiet", f"--object-format={'sha256' if len(wanted) == 64 else 'sha1'}")
        git.run("remote", "add", "origin", self._job.access.remote)
        self._fetch()
        commit = git.run("rev-parse", "--verify", f"{wanted}^{{commit}}").decode().strip()
        if said not in ("", commit):
            raise GitFailed(f"the server says that {wanted} is the commit {said}, and it is {commit}")
        git.run("checkout", "--progress", "--force", "--detach", commit)
        if self._job.submodules and os.path.isfile(f"{self._tree}/.gitmodules"):
            self._update_submodules()
        time = int(git.run("log", "-1", "--format=%ct", commit)) if self._job.time_of_commit else None
        if self._job.directory:
            self._take_out(self._job.directory)
        if self._keeps:
            self._tidy()
        else:
            _remove_pointers(TREE)
        if time is not None:
            _set_times(TREE, time)
        return commit

    # --- the commit --------------------------------------------------------------------------------------------------

    def _fetch(self) -> None:
        """Fetch what is needed of the commit alone; all there is of a server that cannot do that."""
        reference, commit = self._job.reference, self._job.commit
        if reference:
            here = reference if self._keeps else _FOUND
            self._shallow(f"+{reference}:{here}")
            if self._has_commit():
                return
        try:
            self._shallow(commit)
        except GitFailed:
            self._git.run(
                "fetch", "--progress", "--update-head-ok", "--tags", "origin", "+refs/heads/*:refs/remotes/origin/*"
            )
        if not self._has_commit():
            raise GitFailed(f"the repository does not contain the commit {commit}")

    def _shallow(self, what: str) -> None:
        arguments = ["fetch", "--progress", "--update-head-ok", "--no-tags", "--no-recurse-submodules"]
        try:
            self._git.run(*arguments, "--depth=1", "origin", what)
        except GitFailed as error:
            if "shallow" not in str(error) and "--depth" not in str(error):
                raise
            self._git.run(*arguments, "origin", what)  # plain files on a web server

    def _has_commit(self) -> bool:
        try:
            self._git.run("cat-file", "-e", f"{self._job.commit}^{{commit}}")
        except GitFailed:
            return False
        return True

    def _update_submodules(self) -> None:
        arguments = ["submodule", "update", "--init", "--recursive", "--progress"]
        try:
            self._git.run(*arguments, "--depth=1")
        except GitFailed as error:
            if "shallow" not in str(error) and "--depth" not in str(error):
                raise GitFailed(f"failed to update submodules: {error}") from None
            self._git.run(*arguments)

    # --- its files ---------------------------------------------------------------------------------------------------

    def _take_out(self, directory: str) -> None:
        """One directory of the whole tree becomes all of it."""
        place = self._tree
        for name in [part for part in directory.split("/") if part not in ("", ".")]:
            place = f"{place}/{name}"
            if name == ".." or os.path.islink(place) or not os.path.isdir(place):
                raise GitFailed(f"{directory} is not a directory of the repository")
        for name in os.listdir(place):
            os.rename(f"{place}/{name}", f"{TREE}/{name}")
        shutil.rmtree(self._tree)

    def _tidy(self) -> None:
        remote = without_password(self._job.access.remote, self._job.access.remote)
        self._git.run("remote", "set-url", "origin", remote)
        for name in ("FETCH_HEAD", "ORIG_HEAD"):
            if os.path.lexists(f"{TREE}/.git/{name}"):
                os.unlink(f"{TREE}/.git/{name}")


def _remove_pointers(tree: str) -> None:
    """Submodules have a file that says where the rest of them is; that is gone. No commit can have such a file."""
    for directory, _, files in os.walk(tree):
        if ".git" in files:
            os.unlink(f"{directory}/.git")


def _set_times(tree: str, seconds: int) -> None:
    for directory, names, files in os.walk(tree, topdown=False):
        for name in (*names, *files):
            os.utime(f"{directory}/{name}", (seconds, seconds), follow_symlinks=False)
    os.utime(tree, (seconds, seconds))
