// The state of the fake driver as plain data, which can be stored in a file, passed to a restarted driver, inspected
// by a checker, or dropped.

export interface FakeState {
  /** Number of volumes and snapshots ever created, so that ids are never reused. */
  sequence: number
  readonly volumes: Record<string, FakeVolume>
  readonly snapshots: Record<string, FakeSnapshot>
  /** While set, GetCapacity reports these bytes as used, by pool. */
  frozenUsedBytes?: Record<string, number> | undefined
}

export interface FakeVolume {
  readonly id: string
  readonly name: string
  /** Position in lists. */
  readonly order: number
  readonly pool: string
  /** The volume takes this multiple of its size from the pool. */
  readonly copies: number
  readonly segments?: Readonly<Record<string, string>>
  capacityBytes: number
  /** The CreateVolume request, to compare a repeated one with. */
  readonly createRequest: {
    readonly capabilities: readonly string[]
    readonly parameters: Readonly<Record<string, string>>
    readonly mutableParameters: Readonly<Record<string, string>>
    readonly source: FakeSource | undefined
  }
  /** The current values. */
  mutableParameters: Record<string, string>
  /** By node id. */
  readonly attachments: Record<string, FakeUse>
  readonly onNodes: Record<string, FakeNodeVolume>
}

export interface FakeSource {
  readonly kind: 'snapshot' | 'volume'
  readonly id: string
}

export interface FakeUse {
  readonly capability: string
  readonly isReadonly: boolean
}

/** A volume on one node: its uses by staging path and by target path. */
export interface FakeNodeVolume {
  readonly staged: Record<string, FakeUse>
  readonly published: Record<string, FakeUse>
  /** The size of the file system. */
  fileSystemBytes: number
}

export interface FakeSnapshot {
  readonly id: string
  readonly name: string
  readonly order: number
  readonly sourceVolumeId: string
  readonly sizeBytes: number
  readonly takenMs: number
}

export const emptyState = (): FakeState => ({ sequence: 0, volumes: {}, snapshots: {} })

/** Whether the volume is neither attached, staged nor published, so that it can be deleted. */
export const isUnused = ({ attachments, onNodes }: FakeVolume) =>
  Object.keys(attachments).length === 0 &&
  Object.values(onNodes).every(({ staged, published }) => isEmpty(staged) && isEmpty(published))

export const isEmpty = (record: object) => Object.keys(record).length === 0
