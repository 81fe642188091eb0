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
  Counters,
  Detachment,
  DeviceContent,
  Enforcement,
  FileSizes,
  Files,
  Filesystems,
  FilesystemType,
  Growth,
  Host,
  IoLimit,
  IoLimits,
  IoRates,
  IoTotals,
  LimitInForce,
  LoopDevice,
  Loops,
  MakeOptions,
  MountEntry,
  Mounts,
  SpaceUsage,
  TreeUsage,
  Usage,
} from './host.ts'
export { FILESYSTEM_TYPES } from './host.ts'
export { openHost } from './open-host.ts'
export { type HostFacts, probeHost } from './probe.ts'
