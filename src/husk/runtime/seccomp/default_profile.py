"""The system calls that a container may make: those that act on what is its own.

The rule behind the list: a call is allowed when everything it can reach is in the container's namespaces or checked by
the kernel against rights that the container does not have anyway. Calls that reach what is not namespaced (keyrings,
modules, clocks, swap, kexec), that have had more than their share of kernel bugs (io_uring, userfaultfd, bpf) or that
build new namespaces fail with EPERM; a capability that exists for such a call allows it again. A call that is in no
list fails too, so a new kernel opens nothing by itself. In effect this is what programs meet under Docker.

Sources: the kernel's tables of x86 (32 and 64 bit) and asm-generic, and the manual pages. A test compares the lists
with the tables of the machine's kernel headers, so that no call is forgotten.
"""

import functools
from collections.abc import Collection

Json = dict[str, object]

EPERM, ENOSYS = 1, 38

# CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET
_CLONE_NEW = 0x7E020000
_AF_VSOCK = 40
# PER_LINUX, PER_LINUX32, both with UNAME26, and the query for the present one.
_PERSONALITIES = (0x0, 0x8, 0x20000, 0x20008, 0xFFFFFFFF)

_FILES = """
_llseek access chdir chmod chown chown32 close close_range copy_file_range creat dup dup2 dup3 faccessat faccessat2
fadvise64 fadvise64_64 fallocate fanotify_mark fchdir fchmod fchmodat fchmodat2 fchown fchown32 fchownat fcntl fcntl64
fdatasync fgetxattr flistxattr flock fremovexattr fsetxattr fstat fstat64 fstatat64 fstatfs fstatfs64 fsync ftruncate
ftruncate64 futimesat getcwd getdents getdents64 getxattr getxattrat inotify_add_watch inotify_init inotify_init1
inotify_rm_watch ioctl lchown lchown32 lgetxattr link linkat listmount listxattr listxattrat llistxattr lremovexattr
lseek lsetxattr lstat lstat64 mkdir mkdirat mknod mknodat name_to_handle_at newfstatat oldfstat oldlstat oldstat open
openat openat2 pread64 preadv preadv2 pwrite64 pwritev pwritev2 read readahead readdir readlink readlinkat readv
removexattr removexattrat rename renameat renameat2 rmdir sendfile sendfile64 setxattr setxattrat splice stat stat64
statfs statfs64 statmount statx symlink symlinkat sync sync_file_range sync_file_range2 arm_sync_file_range
arm_fadvise64_64 syncfs tee truncate truncate64 umask unlink unlinkat utime utimensat utimensat_time64 utimes vmsplice
write writev
"""
_WAITING = """
_newselect epoll_create epoll_create1 epoll_ctl epoll_ctl_old epoll_pwait epoll_pwait2 epoll_wait epoll_wait_old eventfd
eventfd2 futex futex_requeue futex_time64 futex_wait futex_waitv futex_wake get_robust_list io_cancel io_destroy
io_getevents io_pgetevents io_pgetevents_time64 io_setup io_submit pipe pipe2 poll ppoll ppoll_time64 pselect6
pselect6_time64 select set_robust_list
"""
_NETWORK = """
accept accept4 bind connect getpeername getsockname getsockopt listen recv recvfrom recvmmsg recvmmsg_time64 recvmsg
send sendmmsg sendmsg sendto setsockopt shutdown socketcall socketpair
"""
_MEMORY = """
brk cachestat madvise map_shadow_stack membarrier memfd_create memfd_secret mincore mlock mlock2 mlockall mmap mmap2
mprotect mremap mseal msync munlock munlockall munmap pkey_alloc pkey_free pkey_mprotect remap_file_pages
"""
_PROCESSES = """
capget capset execve execveat exit exit_group fork getcpu getegid getegid32 geteuid geteuid32 getgid getgid32 getgroups
getgroups32 getpgid getpgrp getpid getppid getpriority getresgid getresgid32 getresuid getresuid32 getrlimit getrusage
getsid gettid getuid getuid32 ioprio_get ioprio_set kill landlock_add_rule landlock_create_ruleset
landlock_restrict_self nice pidfd_open pidfd_send_signal prctl prlimit64 process_mrelease process_vm_readv
process_vm_writev ptrace rseq sched_get_priority_max sched_get_priority_min sched_getaffinity sched_getattr
sched_getparam sched_getscheduler sched_rr_get_interval sched_rr_get_interval_time64 sched_setaffinity sched_setattr
sched_setparam sched_setscheduler sched_yield seccomp set_tid_address setfsgid setfsgid32 setfsuid setfsuid32 setgid
setgid32 setgroups setgroups32 setpgid setpriority setregid setregid32 setresgid setresgid32 setresuid setresuid32
setreuid setreuid32 setrlimit setsid setuid setuid32 tgkill tkill ugetrlimit vfork wait4 waitid waitpid
"""
_SIGNALS = """
pause restart_syscall rt_sigaction rt_sigpending rt_sigprocmask rt_sigqueueinfo rt_sigreturn rt_sigsuspend
rt_sigtimedwait rt_sigtimedwait_time64 rt_tgsigqueueinfo sgetmask sigaction sigaltstack signal signalfd signalfd4
sigpending sigprocmask sigreturn sigsuspend ssetmask
"""
_TIME = """
adjtimex alarm clock_adjtime clock_adjtime64 clock_getres clock_getres_time64 clock_gettime clock_gettime64
clock_nanosleep clock_nanosleep_time64 getitimer gettimeofday nanosleep setitimer time timer_create timer_delete
timer_getoverrun timer_gettime timer_gettime64 timer_settime timer_settime64 timerfd_create timerfd_gettime
timerfd_gettime64 timerfd_settime timerfd_settime64 times
"""
_SYSTEM_V_AND_QUEUES = """
ipc mq_getsetattr mq_notify mq_open mq_timedreceive mq_timedreceive_time64 mq_timedsend mq_timedsend_time64 mq_unlink
msgctl msgget msgrcv msgsnd semctl semget semop semtimedop semtimedop_time64 shmat shmctl shmdt shmget
"""
_REST = """
arch_prctl breakpoint cacheflush get_thread_area getrandom modify_ldt oldolduname olduname riscv_flush_icache
riscv_hwprobe s390_pci_mmio_read s390_pci_mmio_write s390_runtime_instr set_thread_area set_tls swapcontext
switch_endian sysinfo uname uretprobe
"""

ALLOWED = frozenset(
    name
    for group in (
        _FILES,
        _WAITING,
        _NETWORK,
        _MEMORY,
        _PROCESSES,
        _SIGNALS,
        _TIME,
        _SYSTEM_V_AND_QUEUES,
        _REST,
    )
    for name in group.split()
)

# Allowed for some arguments only; the rules are in `profile`.
CONDITIONAL = frozenset({"clone", "clone3", "personality", "socket"})

# What a capability opens, beyond ALLOWED.
BY_CAPABILITY: dict[str, frozenset[str]] = {
    capability: frozenset(names.split())
    for capability, names in {
        "CAP_BPF": "bpf",
        "CAP_DAC_READ_SEARCH": "open_by_handle_at",
        "CAP_PERFMON": "perf_event_open",
        "CAP_SYS_ADMIN": (
            "bpf clone clone3 fanotify_init fsconfig fsmount fsopen fspick lookup_dcookie mount mount_setattr "
            "move_mount open_tree perf_event_open quotactl quotactl_fd setdomainname sethostname setns syslog umount "
            "umount2 unshare"
        ),
        "CAP_SYS_BOOT": "reboot",
        "CAP_SYS_CHROOT": "chroot",
        "CAP_SYS_MODULE": "delete_module finit_module init_module",
        "CAP_SYS_NICE": "get_mempolicy mbind set_mempolicy set_mempolicy_home_node",
        "CAP_SYS_PACCT": "acct",
        "CAP_SYS_PTRACE": "kcmp pidfd_getfd process_madvise",
        "CAP_SYS_RAWIO": "ioperm iopl",
        "CAP_SYS_TIME": "clock_settime clock_settime64 settimeofday stime",
        "CAP_SYS_TTY_CONFIG": "vhangup",
        "CAP_SYSLOG": "syslog",
    }.items()
}

# Not namespaced: keyrings, another kernel, swap, pages on other nodes, the root of the mount namespace.
_HOST = "add_key keyctl request_key kexec_file_load kexec_load swapoff swapon migrate_pages move_pages pivot_root"
_RISKY = "io_uring_enter io_uring_register io_uring_setup userfaultfd vm86 vm86old"
_OBSOLETE = """
_sysctl create_module get_kernel_syms nfsservctl query_module sysfs uselib ustat afs_syscall bdflush break ftime getpmsg
gtty idle lock mpx prof profil putpmsg security stty tuxcall ulimit vserver
"""
# Never allowed. Named so that a call in no list is one that nobody has thought about.
DENIED = frozenset(name for group in (_HOST, _RISKY, _OBSOLETE) for name in group.split())

# By the kernel's and by Go's name: the native one first, then those that its processor can also run.
ARCHITECTURES = {
    "x86_64": ("SCMP_ARCH_X86_64", "SCMP_ARCH_X86", "SCMP_ARCH_X32"),
    "aarch64": ("SCMP_ARCH_AARCH64", "SCMP_ARCH_ARM"),
    "armv7l": ("SCMP_ARCH_ARM",),
    "ppc64le": ("SCMP_ARCH_PPC64LE",),
    "riscv64": ("SCMP_ARCH_RISCV64",),
    "s390x": ("SCMP_ARCH_S390X", "SCMP_ARCH_S390"),
}
_GO_NAMES = {"amd64": "x86_64", "arm64": "aarch64", "arm": "armv7l"}


def machine_of(architecture: str) -> str:
    """The kernel's name of an architecture that may be called by Go's."""
    return _GO_NAMES.get(architecture, architecture)


def profile(capabilities: Collection[str], architecture: str) -> Json | None:
    """The `linux.seccomp` part of a bundle; None for an architecture that we have no table of.

    `architecture` is that of the host, as uname or as Go calls it.
    """
    machine = machine_of(architecture)
    return dict(_profile(frozenset(capabilities), machine)) if machine in ARCHITECTURES else None


@functools.lru_cache(32)
def _profile(capabilities: frozenset[str], machine: str) -> Json:
    """Every start asks for it, and most ask for the same: nobody changes it."""
    names = set(ALLOWED)
    for capability in capabilities:
        names |= BY_CAPABILITY.get(capability, frozenset())
    rules: list[Json] = [{"names": sorted(names), "action": "SCMP_ACT_ALLOW"}]
    rules += [_when("personality", 0, value, "SCMP_CMP_EQ") for value in _PERSONALITIES]
    rules.append(_when("socket", 0, _AF_VSOCK, "SCMP_CMP_NE"))
    if "clone" not in names:
        flags = 1 if machine == "s390x" else 0
        rules.append(_when("clone", flags, _CLONE_NEW, "SCMP_CMP_MASKED_EQ", 0))
        # A filter cannot see the flags of clone3; told that there is none, libraries use clone.
        rules.append({"names": ["clone3"], "action": "SCMP_ACT_ERRNO", "errnoRet": ENOSYS})
    return {
        "defaultAction": "SCMP_ACT_ERRNO",
        "defaultErrnoRet": EPERM,
        "architectures": list(ARCHITECTURES[machine]),
        "syscalls": rules,
    }


def _when(name: str, index: int, value: int, operator: str, second: int | None = None) -> Json:
    argument: Json = {"index": index, "value": value, "op": operator}
    if second is not None:
        argument["valueTwo"] = second
    return {"names": [name], "action": "SCMP_ACT_ALLOW", "args": [argument]}
