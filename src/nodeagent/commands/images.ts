// The images for which a container needs no command. A node runs no images: a container runs its own command or, without one,
// the command that this table or --image-command gives for its image. Containers of test images also have the shell and the
// programs that their scripts expect.
import { AGNHOST_SCRIPT } from './agnhost.ts'

export interface ImageEntry {
  /** Run if the container has no command. */
  readonly command: readonly string[]
  /** Run if the container has neither a command nor arguments. */
  readonly args: readonly string[]
  /** Files that the image contains, by absolute path. Scripts are executable. */
  readonly files?: Readonly<Record<string, string>>
  /** Whether scripts for the image use features of its shell that /bin/sh of the machine may not have. */
  readonly needsBash?: boolean
}

const SLEEP = 'trap "exit 0" TERM INT; while :; do sleep 3600 & wait; done'
const shell = (script: string) => ['/bin/sh', '-c', script]

/**
 * The users and groups of a small image. The Kubernetes e2e tests expect group IDs in the output of ls(1), which would print
 * names of groups of the machine.
 */
const ACCOUNT_FILES = {
  '/etc/passwd': 'root:x:0:0:root:/root:/bin/sh\ndaemon:x:1:1:daemon:/usr/sbin:/bin/false\n',
  '/etc/group': 'root:x:0:\ndaemon:x:1:\n',
}

const PAUSE: ImageEntry = { command: shell(SLEEP), args: [] }
const BUSYBOX: ImageEntry = { command: [], args: ['/bin/sh'], files: ACCOUNT_FILES, needsBash: true }
/** Web servers are not run: the pods of several nodes share the ports of the machine. */
const WEB_SERVER: ImageEntry = {
  command: shell(`echo 'This container stands in for its image: it sleeps, and serves nothing.'; ${SLEEP}`),
  args: [],
  files: ACCOUNT_FILES,
  needsBash: true,
}

/** By the last part of the image name, without registry, tag or digest. */
const KNOWN_IMAGES: Readonly<Record<string, ImageEntry>> = {
  none: PAUSE,
  scratch: PAUSE,
  pause: PAUSE,
  busybox: BUSYBOX,
  alpine: BUSYBOX,
  debian: BUSYBOX,
  ubuntu: BUSYBOX,
  bash: BUSYBOX,
  nginx: WEB_SERVER,
  'nginx-slim': WEB_SERVER,
  httpd: WEB_SERVER,
  agnhost: {
    command: ['/agnhost'],
    args: ['pause'],
    files: { ...ACCOUNT_FILES, '/agnhost': AGNHOST_SCRIPT },
    needsBash: true,
  },
}

export interface ImageCommand {
  /** An image with or without registry, tag and digest. */
  readonly image: string
  /** Run by /bin/sh, with the arguments of the container. */
  readonly command: string
}

/** Returns undefined for an image that is not known. `imageCommands` take precedence, the last one first. */
export function findImage(image: string, imageCommands: readonly ImageCommand[]): ImageEntry | undefined {
  const match = imageCommands.findLast((candidate) => isNamedBy(image, candidate.image))
  const name = withoutTag(image).split('/').at(-1)!
  const known = Object.hasOwn(KNOWN_IMAGES, name) ? KNOWN_IMAGES[name] : undefined
  if (!match) return known
  return { ...known, command: ['/bin/sh', '-c', `exec ${match.command} "$@"`, 'sh'], args: [] }
}

/** Returns whether the text names the image: completely or from any `/` on, with or without the tag. */
function isNamedBy(image: string, text: string): boolean {
  return [image, withoutTag(image)].some((name) => name === text || name.endsWith(`/${text}`))
}

/** Removes the tag and the digest. A port of the registry is not a tag. */
const withoutTag = (image: string): string => image.replace(/@.*$/, '').replace(/:[^/:]*$/, '')

export const describeUnknownImage = (image: string, container: string): string =>
  `This node runs no images, and has no command for image ${JSON.stringify(image)}. Set the command of container ` +
  `${JSON.stringify(container)}, or start the node with --image-command '${withoutTag(image) || 'IMAGE'}=COMMAND'.`
