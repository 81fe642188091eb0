// The program /agnhost in containers with the agnhost image: a script with the subcommands that the Kubernetes storage
// tests use. It prints what these tests compare: quoted paths, modes such as `drwxrwxrwx`, numbers of file system types.

export const AGNHOST_SCRIPT = `#!/bin/bash
# Stands in for the test program agnhost.
sleep_until_stopped() {
  trap 'exit 0' TERM INT
  while :; do sleep 3600 & wait; done
}

describe_fs() {
  local type
  type=$(stat -f -c %t -- "$1" 2>&1) || { echo "error from statfs(\\"$1\\"): $type"; return 1; }
  case $type in 1021994) type=tmpfs;; *) type=$((16#$type));;
  esac
  echo "mount type of \\"$1\\": $type"
}

# Letters of the kind of file and of its special bits, then the permissions: dgrwxrwxrwx for a directory with setgid.
format_mode() {
  local bits=$1 kind=$2 letters= permissions= index
  case $kind in directory) letters=d;; 'symbolic link') letters=L;; fifo) letters=p;; socket) letters=S;; block*) letters=D;; character*) letters=Dc;; esac
  (( bits & 04000 )) && letters+=u
  (( bits & 02000 )) && letters+=g
  (( bits & 01000 )) && letters+=t
  local all=rwxrwxrwx
  for index in 0 1 2 3 4 5 6 7 8; do
    if (( bits & (1 << (8 - index)) )); then permissions+=\${all:index:1}; else permissions+=-; fi
  done
  echo "\${letters:--}$permissions"
}

describe_mode() {
  local mode
  mode=$(stat -L -c %a -- "$2" 2>&1) || { echo "error from Stat(\\"$2\\"): $mode"; return 1; }
  if [ "$1" = mode ]; then echo "mode of file \\"$2\\": $(format_mode "$((8#$mode))" "$(stat -L -c %F -- "$2")")"
  else echo "perms of file \\"$2\\": $(format_mode "$((8#$mode & 0777))" file)"; fi
}

describe_owner() {
  local owner
  owner=$(stat -L -c '%u %g' -- "$1" 2>&1) || { echo "error from stat(\\"$1\\"): $owner"; return 1; }
  echo "owner UID of \\"$1\\": \${owner% *}"
  echo "owner GID of \\"$1\\": \${owner#* }"
}

show_content() {
  local content
  content=$(cat -- "$1" 2>&1 && echo x) || { echo "error reading file content for \\"$1\\": $content"; return 1; }
  echo "content of file \\"$1\\": \${content%x}"
}

write_file() {
  local error
  error=$( { umask "$(printf '%o' "$((0777 & ~8#$2))")"; echo 'mount-tester new file' > "$1"; } 2>&1) ||
    { echo "error writing new file \\"$1\\": $error"; return 1; }
  show_content "$1"
}

show_content_in_loop() {
  local end=$((SECONDS + $2)) content result=1
  while (( SECONDS < end )); do
    if content=$(cat -- "$1" 2>&1 && echo x); then
      content=\${content%x} result=0
      echo "content of file \\"$1\\": $content"
      if [ "$3" = true ]; then
        [ "$content" = 'mount-tester new file
' ] && return 0
        echo 'Unexpected content. Expected: mount-tester new file. Retrying'
      fi
    else
      result=1
      echo "Error reading file $1: $content, retrying"
    fi
    sleep 2
  done
  return $result
}

mounttest() {
  local retry=180 stops=true failed=0 name value
  declare -A flags
  while [ $# -gt 0 ]; do
    name=\${1#--} name=\${name#-}
    case $name in *=*) value=\${name#*=} name=\${name%%=*}; shift;; *) value=$2; shift; [ $# -gt 0 ] && shift;; esac
    case $name in
      retry_time) retry=$value;;
      break_on_expected_content) stops=$value;;
      fs_type|file_mode|file_perm|file_owner|file_content|file_content_in_loop|new_file_0644|new_file_0666|new_file_0660|new_file_0777) flags[$name]=$value;;
      *) echo "Error: unknown flag: --$name" >&2; exit 1;;
    esac
  done
  umask 0
  [ -z "\${flags[fs_type]}" ] || describe_fs "\${flags[fs_type]}" || failed=1
  for mode in 0644 0666 0660 0777; do
    [ -z "\${flags[new_file_$mode]}" ] || write_file "\${flags[new_file_$mode]}" "$mode" || failed=1
  done
  [ -z "\${flags[file_mode]}" ] || describe_mode mode "\${flags[file_mode]}" || failed=1
  [ -z "\${flags[file_perm]}" ] || describe_mode perms "\${flags[file_perm]}" || failed=1
  [ -z "\${flags[file_owner]}" ] || describe_owner "\${flags[file_owner]}" || failed=1
  [ -z "\${flags[file_content]}" ] || show_content "\${flags[file_content]}" || failed=1
  [ -z "\${flags[file_content_in_loop]}" ] || show_content_in_loop "\${flags[file_content_in_loop]}" "$retry" "$stops" || failed=1
  exit $failed
}

case $1 in
  pause) sleep_until_stopped;;
  mounttest) shift; mounttest "$@";;
  entrypoint-tester) shift; echo "[/agnhost entrypoint-tester\${*:+ }$*]";;
  *)
    echo "The stand-in for agnhost has no subcommand \\"$1\\". It has pause, mounttest and entrypoint-tester." >&2
    exit 1;;
esac
`
