// Starts a command as a process of the machine in its own mount namespace, with the pod's volumes at their mount paths. The
// root of the namespace is a temporary overlay over the machine's root: writes outside of volumes are discarded, and
// no mount points are created on the machine. This is not a sandbox: the process shares the network and PID namespaces and,
// if the agent is root, the user namespace.
import { spawn } from 'node:child_process'
import type { FileHandle } from 'node:fs/promises'
import { searchPath } from '../../host/run.ts'
import { buildTerminalCommand } from './terminal.ts'
import { findTool } from './tools.ts'

export interface LaunchMount {
  readonly source: string
  /** Absolute path in the container. */
  readonly target: string
  readonly readOnly: boolean
  /** Whether to also mount /proc, /sys and /dev below the target. For the root directory of the machine. */
  readonly hasKernelMounts?: boolean
}

export interface LaunchOptions {
  /** The program and its arguments, with the prefix that applies the container's user. */
  readonly command: readonly string[]
  /** The program without the prefix. The command is not started if it does not exist. */
  readonly program: string
  readonly env: Readonly<Record<string, string>>
  readonly workingDir: string
  readonly mounts: readonly LaunchMount[]
  /** The cgroup.procs files to which the process writes its PID first. */
  readonly cgroupFiles: readonly string[]
  /** Descriptors of the process. They are closed after its start. */
  readonly stdio: { readonly stdin?: FileHandle; readonly stdout: FileHandle; readonly stderr: FileHandle }
  /** Whether the process has a terminal, whose output goes to stdout. */
  readonly tty: boolean
  /** The file to which the process writes its PID, in case the agent crashes before it can do so. */
  readonly pidFile: string
  /** The file for the exit code and time. It is empty while the process runs. */
  readonly exitFile: string
  /** The file to which the process writes `ok` before it starts the command, or why it cannot. */
  readonly startFile: string
  readonly hasReadOnlyRoot: boolean
  /** An empty directory on which the overlay is mounted inside the namespace. */
  readonly scratch: string
}

// If the machine's root cannot be overlaid as a whole, e.g. without root privileges, each top-level directory is
// overlaid, or shown read-only. If the PID file exists and has another PID, the run is lost: the agent that started it was
// killed, and another agent starts the next run. Each argument list ends with an empty argument. If a step fails, the command
// is not started, and the log or the start file contains the error. The script uses its own PATH, the command that of the
// container.
//
// `enter` resolves mount paths and the working directory inside the new root, part by part: a link such as /var/run -> /run, or
// one that a pod created in a volume, would otherwise lead to the machine. The shell's working directory is the open directory,
// so that a missing part is created in it even if its name is replaced in between, and after each step its real path must be in
// the new root. A volume gets its options before it is moved to its mount path, for the same reason. The move does not update
// utab of mount(8), which a user without root may not write, and mount(8) reports that as a failure.
//
// Then all other mounts are removed from the namespace, because they would keep the volumes of other pods mounted. When the
// command has exited, the rest of its process group is killed, as the processes of a container end with its first process.
const SCRIPT = `
pid_file=$1 exit_file=$2 start_file=$3 scratch=$4 working_dir=$5 program=$6 root_mode=$7; shift 7
container_path=$PATH PATH=$1; shift
ticks() { shift 19; echo "$1"; }
read -r stat < /proc/$$/stat
printf '{"pid":%s,"startTicks":"%s"}\\n' $$ "$(ticks \${stat##*) })" > "$pid_file.new" || exit 126
if ! ln "$pid_file.new" "$pid_file" 2>/dev/null; then
  read -r record < "$pid_file"
  case $record in *"\\"pid\\":$$,"*) ;; *) exit 126;; esac
fi
rm -f "$pid_file.new"
while [ -n "$1" ]; do echo $$ > "$1" || exit 126; shift; done; shift
exec 3> "$exit_file" 4> "$start_file"
trap : TERM INT
(
  exec 3>&-
  set -e
  mount -t tmpfs tmpfs "$scratch"
  root=$(cd -P "$scratch" && pwd -P)/root
  mkdir "$scratch/upper" "$scratch/work" "$root"
  layer() { mount -t overlay overlay -o "lowerdir=$1,upperdir=$2/upper,workdir=$2/work" "$3"; }
  if layer / "$scratch" "$root" 2>/dev/null; then
    for dir in /usr /opt; do
      if mountpoint -q "$dir"; then mount --bind "$dir" "$root$dir"; mount -o remount,bind,ro "$root$dir"; fi
    done
  else
    mount -t tmpfs tmpfs "$root"
    for entry in /*; do
      case $entry in /dev|/proc|/sys|/tmp|/run) continue;; esac
      if [ -L "$entry" ]; then cp -P "$entry" "$root$entry"; continue; fi
      [ -d "$entry" ] || continue
      mkdir -p "$root$entry" "$scratch/parts$entry/upper" "$scratch/parts$entry/work"
      if ! layer "$entry" "$scratch/parts$entry" "$root$entry" 2>/dev/null; then
        mount --rbind "$entry" "$root$entry"
        mount -o remount,bind,ro "$root$entry"
      fi
    done
  fi
  for dir in /dev /tmp /run; do mkdir -p "$root$dir"; mount -t tmpfs tmpfs "$root$dir"; done
  chmod 1777 "$root/tmp"
  for node in null zero full random urandom tty ptmx; do
    if [ -e "/dev/$node" ]; then : > "$root/dev/$node"; mount --bind "/dev/$node" "$root/dev/$node"; fi
  done
  mkdir "$root/dev/shm"
  ln -s /proc/self/fd "$root/dev/fd"
  for stream in 0:stdin 1:stdout 2:stderr; do ln -s "/proc/self/fd/\${stream%:*}" "$root/dev/\${stream#*:}"; done
  if [ -d /dev/pts ]; then mkdir "$root/dev/pts"; mount --rbind /dev/pts "$root/dev/pts"; fi
  mkdir -p "$root/proc" "$root/sys"
  mount --rbind /proc "$root/proc"
  mount --rbind /sys "$root/sys"
  if [ -d /run/systemd/resolve ]; then
    mkdir -p "$root/run/systemd/resolve"
    mount --bind /run/systemd/resolve "$root/run/systemd/resolve"
  fi
  refuse() { echo "$1" >&4; echo "stowage: $1" >&2; exit "$2"; }
  fail() { refuse "cannot use $path in the container: $1" 126; }
  step() { cd -P "$1"; case $PWD/ in "$root"/*) ;; *) fail 'it leads out of the container';; esac; }
  enter() {
    kind=$1 path=$2 rest=$2 links=0 name=.
    step "$root"
    while [ -n "$rest" ]; do
      part=\${rest%%/*}
      case $rest in */*) rest=\${rest#*/};; *) rest=;; esac
      case $part in
        ''|.) continue;;
        ..) [ "$PWD" = "$root" ] || step ..; continue;;
      esac
      if [ -L "./$part" ]; then
        links=$((links + 1))
        [ "$links" -le 40 ] || fail 'it has too many links'
        target=$(readlink "./$part")
        case $target in /*) step "$root";; esac
        rest=$target/$rest
        continue
      fi
      if [ ! -e "./$part" ]; then
        case $PWD/ in "$root"/proc/*|"$root"/sys/*) fail 'it does not exist in /proc or /sys';; esac
      fi
      if [ "$kind" = file ] && [ -z "\${rest#/}" ]; then
        [ -e "./$part" ] || (set -C; : > "./$part")
        name=./$part
        return
      fi
      [ -e "./$part" ] || mkdir "./$part"
      step "./$part"
    done
  }
  mkdir "$scratch/volumes"
  index=0
  while [ -n "$1" ]; do
    from=$1 to=$2 mode=$3 index=$((index + 1)); shift 3
    volume=$scratch/volumes/$index
    if [ -d "$from" ]; then kind=directory; mkdir "$volume"; else kind=file; : > "$volume"; fi
    mount --bind "$from" "$volume"
    case $mode in *ro) mount -o remount,bind,ro "$volume";; esac
    case $mode in machine-*) for dir in /proc /sys /dev; do mount --rbind "$dir" "$volume$dir"; done;; esac
    enter "$kind" "$to"
    if [ "$PWD" = "$root" ] && [ "$name" = . ]; then fail 'it is the root directory'; fi
    mount --no-mtab --no-canonicalize --move "$volume" "$name"
  done; shift
  mkdir "$root/.machine"
  enter directory "$working_dir"
  pivot_root "$root" "$root/.machine"
  umount -l /.machine
  rmdir /.machine
  if [ "$root_mode" = ro ]; then mount -o remount,bind,ro /; fi
  PATH=$container_path
  case $program in
    */*) if [ ! -x "$program" ] || [ -d "$program" ]; then refuse "exec: \\"$program\\": no such file or not executable" 127; fi;;
    *) found=$(command -v -- "$program") || refuse "exec: \\"$program\\": executable file not found in \\$PATH" 127;;
  esac
  echo ok >&4
  exec 4>&-
  exec "$@"
)
code=$?
echo "$code $(date +%s%3N)" >&3
kill -KILL 0
`

export interface LaunchedProcess {
  /** The process that was started. With a terminal, the process that writes the PID file is its child. */
  readonly pid: number
  onExit(listener: () => void): void
}

export async function launch(
  options: LaunchOptions,
  { isRoot }: { readonly isRoot: boolean },
): Promise<LaunchedProcess> {
  const { stdin, stdout, stderr } = options.stdio
  try {
    const namespace = isRoot ? ['--mount'] : ['--user', '--map-root-user', '--mount']
    const modeOf = ({ readOnly, hasKernelMounts }: LaunchMount) =>
      `${hasKernelMounts ? 'machine-' : ''}${readOnly ? 'ro' : 'rw'}`
    const mounts = options.mounts.flatMap((mount) => [mount.source, mount.target, modeOf(mount)])
    const scriptArguments = [
      options.pidFile,
      options.exitFile,
      options.startFile,
      options.scratch,
      options.workingDir,
      options.program,
      options.hasReadOnlyRoot ? 'ro' : 'rw',
      searchPath(),
      ...options.cgroupFiles,
      '',
      ...mounts,
      '',
      ...options.command,
    ]
    const containerCommand = {
      argv: [findTool('unshare'), ...namespace, '--', '/bin/sh', '-c', SCRIPT, 'sh', ...scriptArguments],
      env: { PATH: searchPath(), ...options.env },
    }
    const { argv, env } = options.tty
      ? buildTerminalCommand(containerCommand.argv, containerCommand.env)
      : containerCommand
    const child = spawn(argv[0]!, argv.slice(1), {
      cwd: '/',
      env,
      stdio: [stdin?.fd ?? 'ignore', stdout.fd, stderr.fd],
      detached: true, // in its own process group, which outlives the agent
    })
    await new Promise<void>((resolve, reject) => {
      child.once('spawn', resolve)
      child.once('error', reject)
    })
    child.unref()
    return { pid: child.pid!, onExit: (listener) => void child.once('exit', listener) }
  } finally {
    await Promise.all([stdin?.close(), stdout.close(), stderr.close()])
  }
}
