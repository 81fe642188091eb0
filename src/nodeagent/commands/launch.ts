// Starts one command as a process of the machine, with the pod's volumes at their mount paths. The process gets a mount
// namespace of its own, whose root is a throw-away layer over the machine's root: it sees the machine's files, what it
// writes outside volumes goes with it, and mounting a volume at a path makes nothing on the machine.
// It is no sandbox: the process has the agent's user, network and processes.
import { spawn } from 'node:child_process'
import { type FileHandle, open } from 'node:fs/promises'
import { searchPath } from '../../host/run.ts'

export interface LaunchMount {
  readonly from: string
  /** Absolute, in the container. */
  readonly to: string
  readonly readOnly: boolean
}

export interface Launch {
  readonly command: readonly string[]
  readonly env: Readonly<Record<string, string>>
  readonly workingDir: string
  readonly mounts: readonly LaunchMount[]
  /** Where the process writes its number before anything else. */
  readonly cgroupFiles: readonly string[]
  readonly logFile: string
  /** Where it says which process it is, in case the agent does not live to do so. */
  readonly pidFile: string
  /** Where its exit code is written when it has ended; empty until then. */
  readonly exitFile: string
  /** An empty directory that stays empty: the layer is mounted there, in the namespace alone. */
  readonly scratch: string
}

// Without root the machine's root cannot be layered as a whole: then each directory in it is, or is shown as it is.
// Each argument list ends with an empty word, so that a path may hold anything. Whatever of it fails, the command is not
// started, and the log says why. In the end nothing of the machine's mounts is left in the namespace: a volume of another
// pod that were, would stay mounted for as long as this process runs.
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
  root=$scratch/root
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
      layer "$entry" "$scratch/parts$entry" "$root$entry" 2>/dev/null || mount --rbind "$entry" "$root$entry"
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
  while [ -n "$1" ]; do
    from=$1 to=$root$2 mode=$3; shift 3
    if [ -d "$from" ]; then mkdir -p "$to"; else mkdir -p "$(dirname "$to")"; [ -e "$to" ] || : > "$to"; fi
    mount --bind "$from" "$to"
    if [ "$mode" = ro ]; then mount -o remount,bind,ro "$to"; fi
  done; shift
  mkdir -p "$root$working_dir" "$root/.machine"
  pivot_root "$root" "$root/.machine"
  cd /
  umount -l /.machine
  rmdir /.machine
  cd "$working_dir"
  exec "$@"
)
echo $? >&3
`

export interface Launched {
  readonly pid: number
  onExit(run: () => void): void
}

export async function launch(of: Launch, { isRoot }: { readonly isRoot: boolean }): Promise<Launched> {
  const output: FileHandle = await open(of.logFile, 'a', 0o640)
  try {
    const namespace = isRoot ? ['--mount'] : ['--user', '--map-root-user', '--mount']
    const mounts = of.mounts.flatMap(({ from, to, readOnly }) => [from, to, readOnly ? 'ro' : 'rw'])
    const script = [
      of.pidFile,
      of.exitFile,
      of.scratch,
      of.workingDir,
      ...of.cgroupFiles,
      '',
      ...mounts,
      '',
      ...of.command,
    ]
    const child = spawn('unshare', [...namespace, '--', '/bin/sh', '-c', SCRIPT, 'sh', ...script], {
      cwd: '/',
      env: { PATH: searchPath(), ...of.env },
      stdio: ['ignore', output.fd, output.fd],
      detached: true, // a group of its own, that outlives the agent and is ended as one
    })
    await new Promise<void>((resolve, reject) => {
      child.once('spawn', resolve)
      child.once('error', reject)
    })
    child.unref()
    return { pid: child.pid!, onExit: (run) => void child.once('exit', run) }
  } finally {
    await output.close()
  }
}
