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
  /** Undefined if the capability does not specify one. */
  readonly fsType?: FilesystemType
  readonly mountFlags: readonly string[]
}

/** Only single-node modes are supported, because a volume is a file on one node. */
const SUPPORTED_MODES: ReadonlySet<Mode> = new Set([
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
  if (!SUPPORTED_MODES.has(mode)) {
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

/** Like parseCapability, but also rejects capabilities that the backend does not support on this machine. */
export function parseSupportedCapability(
  backend: Backend,
  capability: VolumeCapability,
  fsType: FilesystemType = backend.defaultFsType,
): RequestedCapability {
  const requestedCapability = parseCapability(capability)
  const ability = backend.checkSupport({ ...requestedCapability, fsType: requestedCapability.fsType ?? fsType })
  if (!ability.available) throw invalid(`The volume capability is not supported here. ${asSentence(ability.message)}`)
  return requestedCapability
}

/** Rejects invalid flags. Errors contain only a flag's name, because its value may be sensitive. */
function checkMountFlags(flags: readonly string[]): void {
  for (const flag of flags.flatMap((value) => value.split(','))) {
    const name = flag.split('=')[0]!.trim().toLowerCase()
    if (/[\s\0]/.test(flag)) throw invalid('A mount flag contains whitespace. Remove it from the mount options.')
    if (!FORBIDDEN_FLAGS.has(name) && !name.startsWith('x-')) continue
    throw invalid(
      `The mount flag ${quote(name)} is not allowed: ${FORBIDDEN_FLAGS.get(name) ?? OTHER_OPERATION}. Remove it from the mount options.`,
    )
  }
}

const OTHER_OPERATION = 'it would turn the mount into another operation'
const OPERATION_FLAGS = [
  'bind',
  'rbind',
  'move',
  'remount',
  'loop',
  'offset',
  'sizelimit',
  'helper',
  'uhelper',
  'fstab',
]
const PROPAGATION_FLAGS = ['private', 'rprivate', 'shared', 'rshared', 'slave', 'rslave', 'unbindable', 'runbindable']
const DEVICE_FLAGS = ['logdev', 'rtdev', 'journal_dev', 'journal_path']
const FORBIDDEN_FLAGS: ReadonlyMap<string, string> = new Map([
  ...DEVICE_FLAGS.map((name) => [name, 'it names another device'] as const),
  ...[...OPERATION_FLAGS, ...PROPAGATION_FLAGS].map((name) => [name, OTHER_OPERATION] as const),
  ['discard', 'it would release the space that is reserved for the volume'],
  ['ro', 'read-only is requested when the volume is published'],
])
