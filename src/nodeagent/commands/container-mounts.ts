// Prepares the mounts of a container: its devices, its volumes with their subPaths, the file for its termination message, and
// the files and the shell of its image. launch-process.ts mounts them.
import { join, normalize } from 'node:path'
import type { Container } from '../../api/kinds/pod/container-schema.ts'
import { type NodeDisk, SubPathError } from '../disk/disk.ts'
import type { AgentPaths } from '../paths.ts'
import { ConfigError, type Environment, expandVariables } from './environment.ts'
import type { ImageEntry } from './images.ts'
import type { LaunchMount } from './launch-process.ts'
import type { RunFiles } from './run-records.ts'
import { DEFAULT_MESSAGE_PATH } from './termination-message.ts'
import { subPathArguments, type VolumePath, type VolumePaths } from './volume-path.ts'

export interface MountDeps {
  readonly disk: NodeDisk
  readonly paths: AgentPaths
  readonly isRoot: boolean
  /** Path of bash on the machine, if it is installed. */
  readonly bash?: string
}

export interface MountedContainer {
  readonly uid: string
  readonly container: Readonly<Container>
  readonly env: Environment
  readonly image?: ImageEntry
  readonly files: RunFiles
}

type VolumeMount = NonNullable<Container['volumeMounts']>[number]

const MESSAGE_MODE = 0o666
const EXECUTABLE_MODE = 0o755
const FILE_MODE = 0o644

export async function prepareMounts(
  mounted: MountedContainer,
  volumes: VolumePaths,
  deps: MountDeps,
): Promise<LaunchMount[]> {
  const { container, image, files } = mounted
  const { disk } = deps
  const mounts: LaunchMount[] = []
  for (const [index, volumeMount] of (container.volumeMounts ?? []).entries()) {
    const volume = volumes.get(volumeMount.name)
    if (!volume) continue
    checkVolumeMount(volumeMount)
    const source = await prepareSource(mounted, { volumeMount, volume, index }, deps)
    const readOnly = (volumeMount.readOnly ?? false) || volume.readOnly
    mounts.push({ source, target: volumeMount.mountPath, readOnly, hasKernelMounts: source === '/' })
  }
  for (const { name, devicePath } of container.volumeDevices ?? []) {
    const volume = volumes.get(name)
    if (volume) mounts.push({ source: volume.path, target: devicePath, readOnly: false })
  }
  const messagePath = container.terminationMessagePath || DEFAULT_MESSAGE_PATH
  await disk.writeFile(files.terminationLog, Buffer.alloc(0), MESSAGE_MODE)
  mounts.push({ source: files.terminationLog, target: messagePath, readOnly: false })
  for (const [index, [path, content]] of Object.entries(image?.files ?? {}).entries()) {
    const source = join(files.directory, `image-${index}`)
    await disk.writeFile(source, Buffer.from(content), content.startsWith('#!') ? EXECUTABLE_MODE : FILE_MODE)
    mounts.push({ source, target: path, readOnly: true })
  }
  if (image?.needsBash && deps.bash) mounts.push({ source: deps.bash, target: '/bin/sh', readOnly: true })
  // A nested mount path is longer than the path that contains it, and must be mounted after it.
  return mounts.sort((a, b) => a.target.length - b.target.length)
}

function checkVolumeMount({
  name,
  mountPath,
  mountPropagation,
  recursiveReadOnly,
  bindMountOptions,
}: VolumeMount): void {
  if (normalize(mountPath) === '/') {
    throw new ConfigError(
      `volumeMount "${name}": a volume at / would hide the programs of the machine; use another mountPath`,
    )
  }
  const unsupported = [
    ...(mountPropagation && mountPropagation !== 'None' ? [`mountPropagation ${mountPropagation}`] : []),
    ...(recursiveReadOnly === 'Enabled' ? ['recursiveReadOnly Enabled'] : []),
    ...(bindMountOptions?.length ? ['bindMountOptions'] : []),
  ]
  if (unsupported.length > 0) {
    throw new ConfigError(`volumeMount "${name}": ${unsupported.join()} is not supported by this node agent; remove it`)
  }
}

async function prepareSource(
  { uid, container, env }: MountedContainer,
  { volumeMount, volume, index }: { volumeMount: VolumeMount; volume: VolumePath; index: number },
  { disk, paths, isRoot }: MountDeps,
): Promise<string> {
  const subPath = expandSubPath(volumeMount, env)
  // The root directory of the machine has no parts that could be replaced.
  if (!subPath && (!volume.isHostPath || volume.path === '/')) return volume.path
  const opening = subPathArguments(volume, subPath)
  try {
    if (!isRoot) return subPath ? await disk.makeSubPath(...opening) : volume.path
    const source = join(paths.subPaths(uid), volumeMount.name, container.name, String(index))
    // An earlier run of the container may have replaced the subPath.
    if (await disk.isMountPoint(source)) await disk.unmount(source)
    await disk.removeFile(source).catch(() => disk.removeEmptyDirectory(source))
    await disk.bindSubPath(...opening, source)
    return source
  } catch (error) {
    if (!subPath || !(error instanceof SubPathError || isReadOnlyError(error))) throw error
    const { message } = error as Error
    const place = `subPath for volumeMount "${volumeMount.name}" of container "${container.name}"`
    throw new ConfigError(`failed to prepare ${place}: ${message}`)
  }
}

const isReadOnlyError = (error: unknown) => (error as NodeJS.ErrnoException).code === 'EROFS'

function expandSubPath({ name, subPath = '', subPathExpr }: VolumeMount, env: Environment): string {
  if (!subPathExpr) return subPath
  const unknownName = [...subPathExpr.matchAll(/\$\$|\$\(([^()]*)\)/g)].find(
    ([, variable]) => variable !== undefined && !Object.hasOwn(env, variable),
  )?.[1]
  if (unknownName !== undefined) {
    throw new ConfigError(`failed to expand subPath for volumeMount "${name}": missing value for "${unknownName}"`)
  }
  return expandVariables(subPathExpr, env)
}
