// Public exports of the host package: the operating system of this node behind interfaces (host.ts).
export {
  FileTooLargeError,
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
  Files,
  Host,
  IoRates,
  Mounts,
  Usage,
} from './host.ts'
export { openHost } from './open-host.ts'
export { type HostFacts, probeHost } from './probe.ts'
