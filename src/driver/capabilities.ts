// Parses a VolumeCapability and checks that the driver supports it.
import type { VolumeCapability } from '../csi/gen/csi_pb.js'
import { VolumeCapability_AccessMode_Mode as Mode } from '../csi/gen/csi_pb.js'
import type { FilesystemType } from '../host/host.ts'
import type { Backend } from './backends/backend.ts'
import { asSentence, invalid, missingField, quote } from './errors.ts'
import { parseFsType } from './parameters.ts'
import type { AccessType } from './pool/records.ts'

export interface RequestedCapability {
  readonly accessType: AccessType
  /** Name of the mode in the CSI specification. */
  readonly accessMode: string
  readonly isReadOnly: boolean
  /** Only if the capability specifies one. */
  readonly fsType?: FilesystemType
  readonly mountFlags: readonly string[]
}

/** A volume is a file on one node and not accessible from others. */
const MODES: ReadonlySet<Mode> = new Set([
  Mode.SINGLE_NODE_WRITER,
  Mode.SINGLE_NODE_READER_ONLY,
  Mode.SINGLE_NODE_SINGLE_WRITER,
  Mode.SINGLE_NODE_MULTI_WRITER,
])

/** Throws INVALID_ARGUMENT for capabilities that the driver never supports. */
export function parseCapability(capability: VolumeCapability): RequestedCapability {
  const { accessType } = capability
  const mode = capability.accessMode?.mode ?? Mode.UNKNOWN
  if (accessType.case === undefined) throw missingField('volume_capability.access_type')
  if (mode === Mode.UNKNOWN) throw missingField('volume_capability.access_mode')
  if (!MODES.has(mode)) {
    const name = Mode[mode] ?? String(mode)
    throw invalid(
      `Access mode ${name} is not supported: a local volume is accessible from one node only. Use a SINGLE_NODE mode; in a claim, ReadWriteOnce or ReadWriteOncePod.`,
    )
  }
  const common = { accessMode: Mode[mode], isReadOnly: mode === Mode.SINGLE_NODE_READER_ONLY }
  if (accessType.case === 'block') return { ...common, accessType: 'block', mountFlags: [] }
  const { fsType, mountFlags, volumeMountGroup } = accessType.value
  if (volumeMountGroup !== '') throw invalid('volume_mount_group is not supported: leave ownership to the node agent.')
  checkMountFlags(mountFlags)
  return { ...common, accessType: 'mount', fsType: parseFsType(fsType), mountFlags: [...mountFlags] }
}

/** Throws INVALID_ARGUMENT also for capabilities that the backend does not support on this machine. */
export function parseSupportedCapability(
  backend: Backend,
  capability: VolumeCapability,
  fsType: FilesystemType = backend.defaultFsType,
): RequestedCapability {
  const requested = parseCapability(capability)
  const ability = backend.canServe({ ...requested, fsType: requested.fsType ?? fsType })
  if (!ability.yes) throw invalid(`The volume capability is not supported here. ${asSentence(ability.because)}`)
  return requested
}

/** Error messages contain only the name of an option, because its value may be sensitive. */
function checkMountFlags(flags: readonly string[]): void {
  for (const flag of flags.flatMap((each) => each.split(','))) {
    const name = flag.split('=')[0]!.trim().toLowerCase()
    if (/[\s\0]/.test(flag)) throw invalid('A mount flag contains whitespace. Remove it from the mount options.')
    if (!FORBIDDEN_FLAGS.has(name) && !name.startsWith('x-')) continue
    throw invalid(
      `The mount flag ${quote(name)} is not allowed: ${FORBIDDEN_FLAGS.get(name) ?? OTHER}. Remove it from the mount options.`,
    )
  }
}

const OTHER = 'it would turn the mount into another operation'
const OTHERS = ['bind', 'rbind', 'move', 'remount', 'loop', 'offset', 'sizelimit', 'helper', 'uhelper', 'fstab']
const PROPAGATION = ['private', 'rprivate', 'shared', 'rshared', 'slave', 'rslave', 'unbindable', 'runbindable']
const FORBIDDEN_FLAGS: ReadonlyMap<string, string> = new Map([
  ...[...OTHERS, ...PROPAGATION].map((name) => [name, OTHER] as const),
  ['discard', 'it would release the space that is reserved for the volume'],
  ['ro', 'read-only is requested when the volume is published'],
])
