// The timeline that the command prints, from the journal of a Stowage server or reconstructed.
import type { Timeline, TimelineKind } from '../../../api/kinds/timeline/timeline-schema.ts'

/** The claim or volume whose timeline is shown. */
export interface TimelineTarget {
  readonly kind: TimelineKind
  /** Absent for a volume. */
  readonly namespace?: string
  readonly name: string
  /** The object's uid, if several had the name. Default: the newest. */
  readonly uid?: string
}

export interface ShownTimeline extends TimelineTarget {
  /** `objects` if it is reconstructed from events, conditions and managed fields of existing objects. */
  readonly source: 'journal' | 'objects'
  /** Why the timeline may be incomplete. */
  readonly notes: readonly string[]
  readonly otherUids: readonly string[]
  readonly steps: NonNullable<Timeline['steps']>
  readonly entries: NonNullable<Timeline['entries']>
}

const SHORT_KINDS: Readonly<Record<string, string>> = {
  PersistentVolumeClaim: 'pvc',
  PersistentVolume: 'pv',
  VolumeAttachment: 'va',
  Pod: 'pod',
}

/** Returns a short reference to the object, such as `pvc/data`. */
export const shortRefOf = ({ kind = '', name = '' }: { kind?: string; name?: string }): string =>
  `${SHORT_KINDS[kind] ?? kind.toLowerCase()}/${name}`
