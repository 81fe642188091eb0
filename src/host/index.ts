// Public API of the host package: the operating system of this node behind interfaces (host.ts).
export {
  FrozenError,
  MissingToolError,
  NoSpaceError,
  NotBlankError,
  OccupiedError,
  ProgramFailedError,
} from './errors.ts'
export { minimumBytes } from './filesystems.ts'
export type {
  Ability,
  AppliedLimit,
  Counters,
  Detachment,
  DeviceContent,
  Enforcement,
  FileSizes,
  Files,
  Filesystems,
  FilesystemType,
  FormatOptions,
  Growth,
  Host,
  IoLimit,
  IoLimits,
  IoRates,
  IoTotals,
  LoopDevice,
  Loops,
  MountEntry,
  Mounts,
  SpaceUsage,
  TreeUsage,
  Usage,
} from './host.ts'
export { FILESYSTEM_TYPES } from './host.ts'
export { openHost } from './open-host.ts'
export { type HostFacts, probeHost } from './probe.ts'
