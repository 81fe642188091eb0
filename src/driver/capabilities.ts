// What a caller wants to do with a volume, checked against what can be done here.
import type { VolumeCapability } from '../csi/gen/csi_pb.js'
import { VolumeCapability_AccessMode_Mode as Mode } from '../csi/gen/csi_pb.js'
import type { FilesystemType } from '../host/host.ts'
import type { Backend } from './backends/backend.ts'
import { invalid, missing, quote, sentence } from './errors.ts'
import { parseFsType } from './parameters.ts'
import type { AccessType } from './pool/records.ts'

export interface Wish {
  readonly accessType: AccessType
  /** The mode's name, as the protocol spells it. */
  readonly accessMode: string
  readonly isReadOnly: boolean
  /** Only if the caller names one. */
  readonly fsType?: FilesystemType
  readonly mountFlags: readonly string[]
}

/** A volume is a file on one node: nothing elsewhere can reach it. */
const MODES: ReadonlySet<Mode> = new Set([
  Mode.SINGLE_NODE_WRITER,
  Mode.SINGLE_NODE_READER_ONLY,
  Mode.SINGLE_NODE_SINGLE_WRITER,
  Mode.SINGLE_NODE_MULTI_WRITER,
])

/** Throws INVALID_ARGUMENT for what no volume here can do. */
export function wishOf(capability: VolumeCapability): Wish {
  const { accessType } = capability
  const mode = capability.accessMode?.mode ?? Mode.UNKNOWN
  if (accessType.case === undefined) throw missing('volume_capability.access_type')
  if (mode === Mode.UNKNOWN) throw missing('volume_capability.access_mode')
  if (!MODES.has(mode)) {
    const name = Mode[mode] ?? String(mode)
    throw invalid(
      `Access mode ${name} is not possible: a local volume can be reached from one node only. Use a SINGLE_NODE mode; in a claim, ReadWriteOnce or ReadWriteOncePod.`,
    )
  }
  const common = { accessMode: Mode[mode], isReadOnly: mode === Mode.SINGLE_NODE_READER_ONLY }
  if (accessType.case === 'block') return { ...common, accessType: 'block', mountFlags: [] }
  const { fsType, mountFlags, volumeMountGroup } = accessType.value
  if (volumeMountGroup !== '') throw invalid('volume_mount_group is not supported: leave ownership to the node agent.')
  refuseUnusableFlags(mountFlags)
  return { ...common, accessType: 'mount', fsType: parseFsType(fsType), mountFlags: [...mountFlags] }
}

/** Throws INVALID_ARGUMENT for what this driver, as it runs here, cannot do. */
export function wishOn(
  backend: Backend,
  capability: VolumeCapability,
  fsType: FilesystemType = backend.defaultFsType,
): Wish {
  const wish = wishOf(capability)
  const ability = backend.canServe({ ...wish, fsType: wish.fsType ?? fsType })
  if (!ability.yes) throw invalid(`The volume capability is not possible here. ${sentence(ability.because)}`)
  return wish
}

/** Flags may be sensitive, so a refused one is named only by what it is called. */
function refuseUnusableFlags(flags: readonly string[]): void {
  for (const flag of flags.flatMap((each) => each.split(','))) {
    const name = flag.split('=')[0]!.trim().toLowerCase()
    if (/[\s\0]/.test(flag)) throw invalid('A mount flag contains white space. Remove it from the mount options.')
    if (!REFUSED_FLAGS.has(name) && !name.startsWith('x-')) continue
    throw invalid(
      `The mount flag ${quote(name)} cannot be used: ${REFUSED_FLAGS.get(name) ?? OTHER}. Remove it from the mount options.`,
    )
  }
}

const OTHER = 'it would make this another operation than a mount of the volume'
const OTHERS = ['bind', 'rbind', 'move', 'remount', 'loop', 'offset', 'sizelimit', 'helper', 'uhelper', 'fstab']
const PROPAGATION = ['private', 'rprivate', 'shared', 'rshared', 'slave', 'rslave', 'unbindable', 'runbindable']
const REFUSED_FLAGS: ReadonlyMap<string, string> = new Map([
  ...[...OTHERS, ...PROPAGATION].map((name) => [name, OTHER] as const),
  ['discard', 'it would give the space back that was reserved for the volume'],
  ['ro', 'read-only is asked for when the volume is published'],
])
