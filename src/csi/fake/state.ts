// What the fake driver's storage holds: plain data, so that it can be kept in a file, handed to the driver's next life,
// looked at by a checker, or lost.

export interface FakeState {
  /** Counts what was ever made, so that no id comes twice. */
  sequence: number
  readonly volumes: Record<string, FakeVolume>
  readonly snapshots: Record<string, FakeSnapshot>
  /** While set, GetCapacity reports these bytes as used, by pool, whatever is used now. */
  frozenUsedBytes?: Record<string, number> | undefined
}

export interface FakeVolume {
  readonly id: string
  readonly name: string
  /** Its place in lists. */
  readonly order: number
  readonly pool: string
  /** How many times its size it takes from the pool. */
  readonly copies: number
  readonly segments?: Readonly<Record<string, string>>
  capacityBytes: number
  /** What CreateVolume was asked, for comparison when it is asked again. */
  readonly createRequest: {
    readonly capabilities: readonly string[]
    readonly parameters: Readonly<Record<string, string>>
    readonly mutableParameters: Readonly<Record<string, string>>
    readonly source: FakeSource | undefined
  }
  /** In force now. */
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

/** A volume on one node: by staging path and by target path. */
export interface FakeNodeVolume {
  readonly staged: Record<string, FakeUse>
  readonly published: Record<string, FakeUse>
  /** How far the file system reaches. */
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

/** Nothing keeps a volume from being deleted. */
export const isUnused = ({ attachments, onNodes }: FakeVolume) =>
  Object.keys(attachments).length === 0 &&
  Object.values(onNodes).every(({ staged, published }) => isEmpty(staged) && isEmpty(published))

export const isEmpty = (record: object) => Object.keys(record).length === 0
