// Starts a command as a process of the machine in its own mount namespace, with the pod's volumes at their mount paths. The
// root of the namespace is a temporary overlay over the root of the machine: writes outside of volumes are discarded, and
// no mount points are created on the machine. This is not a sandbox: the process shares the network and PID namespaces and,
// if the agent is root, the user namespace.
import { spawn } from 'node:child_process'
import { type FileHandle, open } from 'node:fs/promises'
import { searchPath } from '../../host/run.ts'

export interface LaunchMount {
  readonly source: string
  /** Absolute path in the container. */
  readonly target: string
  readonly readOnly: boolean
}

export interface LaunchOptions {
  readonly command: readonly string[]
  readonly env: Readonly<Record<string, string>>
  readonly workingDir: string
  readonly mounts: readonly LaunchMount[]
  /** The cgroup.procs files to which the process writes its PID first. */
  readonly cgroupFiles: readonly string[]
  readonly logFile: string
  /** The file to which the process writes its PID, in case the agent crashes before it can do so. */
  readonly pidFile: string
  /** The file for the exit code. It is empty while the process runs. */
  readonly exitFile: string
  /** An empty directory on which the overlay is mounted inside the namespace. */
  readonly scratch: string
}

// If the root of the machine cannot be overlaid as a whole, e.g. without root privileges, each top-level directory is
// overlaid, or shown read-only. Each argument list ends with an empty argument. If a step fails, the command is not started
// and the log contains the error.
//
// `enter` resolves mount paths and the working directory inside the new root, part by part: a link such as /var/run -> /run, or one
// that a pod created in a volume, would otherwise lead to the machine. The working directory of the shell is the open
// directory, so that a missing part is created in it even if its name is replaced meanwhile, and after each step its real
// path must be in the new root. A volume gets its options before it is moved to its mount path, for the same reason. The move
// does not update utab of mount(8), which a user without root may not write, and mount(8) reports that as a failure.
//
// Finally all other mounts are removed from the namespace, because they would keep the volumes of other pods mounted.
const SCRIPT = `
pid_file=$1 exit_file=$2 scratch=$3 working_dir=$4; shift 4
ticks() { shift 19; echo "$1"; }
read -r stat < /proc/$$/stat
printf '{"pid":%s,"startTicks":"%s"}\\n' $$ "$(ticks \${stat##*) })" > "$pid_file.new" && mv "$pid_file.new" "$pid_file"
while [ -n "$1" ]; do echo $$ > "$1" || exit 126; shift; done; shift
exec 3> "$exit_file"
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
  for node in null zero full random urandom tty; do
    if [ -e "/dev/$node" ]; then : > "$root/dev/$node"; mount --bind "/dev/$node" "$root/dev/$node"; fi
  done
  mkdir "$root/dev/shm"
  ln -s /proc/self/fd "$root/dev/fd"
  mkdir -p "$root/proc" "$root/sys"
  mount --rbind /proc "$root/proc"
  mount --rbind /sys "$root/sys"
  if [ -d /run/systemd/resolve ]; then
    mkdir -p "$root/run/systemd/resolve"
    mount --bind /run/systemd/resolve "$root/run/systemd/resolve"
  fi
  fail() { echo "stowage: cannot use $path in the container: $1" >&2; exit 126; }
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
    if [ "$mode" = ro ]; then mount -o remount,bind,ro "$volume"; fi
    enter "$kind" "$to"
    if [ "$PWD" = "$root" ] && [ "$name" = . ]; then fail 'it is the root directory'; fi
    mount --no-mtab --no-canonicalize --move "$volume" "$name"
  done; shift
  mkdir "$root/.machine"
  enter directory "$working_dir"
  pivot_root "$root" "$root/.machine"
  umount -l /.machine
  rmdir /.machine
  exec "$@"
)
echo $? >&3
`

export interface LaunchedProcess {
  readonly pid: number
  onExit(listener: () => void): void
}

export async function launch(
  options: LaunchOptions,
  { isRoot }: { readonly isRoot: boolean },
): Promise<LaunchedProcess> {
  const output: FileHandle = await open(options.logFile, 'a', 0o640)
  try {
    const namespace = isRoot ? ['--mount'] : ['--user', '--map-root-user', '--mount']
    const mounts = options.mounts.flatMap(({ source, target, readOnly }) => [source, target, readOnly ? 'ro' : 'rw'])
    const scriptArguments = [
      options.pidFile,
      options.exitFile,
      options.scratch,
      options.workingDir,
      ...options.cgroupFiles,
      '',
      ...mounts,
      '',
      ...options.command,
    ]
    const child = spawn('unshare', [...namespace, '--', '/bin/sh', '-c', SCRIPT, 'sh', ...scriptArguments], {
      cwd: '/',
      env: { PATH: searchPath(), ...options.env },
      stdio: ['ignore', output.fd, output.fd],
      detached: true, // in its own process group, which outlives the agent
    })
    await new Promise<void>((resolve, reject) => {
      child.once('spawn', resolve)
      child.once('error', reject)
    })
    child.unref()
    return { pid: child.pid!, onExit: (listener) => void child.once('exit', listener) }
  } finally {
    await output.close()
  }
}
