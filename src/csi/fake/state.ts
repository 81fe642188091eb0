// The state of the fake driver. It is plain data, so that it can be stored in a file, passed to a restarted driver and
// inspected by a checker.

export interface FakeState {
  /** Number of volumes and snapshots ever created, so that ids are never reused. */
  sequence: number
  readonly volumes: Record<string, FakeVolume>
  readonly snapshots: Record<string, FakeSnapshot>
  /** The used bytes by pool that GetCapacity reports while capacity is frozen. */
  frozenUsedBytes?: Record<string, number> | undefined
}

export interface FakeVolume {
  readonly id: string
  readonly name: string
  /** The position of the volume in lists. */
  readonly order: number
  readonly pool: string
  /** The volume uses this multiple of its size in the pool. */
  readonly copies: number
  readonly segments?: Readonly<Record<string, string>>
  capacityBytes: number
  /** The CreateVolume request, which is compared with repeated requests. */
  readonly createRequest: {
    readonly capabilities: readonly string[]
    readonly parameters: Readonly<Record<string, string>>
    readonly mutableParameters: Readonly<Record<string, string>>
    readonly source: FakeSource | undefined
  }
  /** The current values of the mutable parameters. */
  mutableParameters: Record<string, string>
  /** Attachments by node id. */
  readonly attachments: Record<string, FakeUse>
  readonly onNodes: Record<string, FakeNodeVolume>
  /** Reported by a driver with VOLUME_CONDITION. Default: healthy. */
  condition?: { readonly abnormal: boolean; readonly message: string }
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
  readonly createdMs: number
}

export const emptyState = (): FakeState => ({ sequence: 0, volumes: {}, snapshots: {} })

/** Returns whether the volume is neither attached nor staged nor published, so that it can be deleted. */
export const isUnused = ({ attachments, onNodes }: FakeVolume) =>
  Object.keys(attachments).length === 0 &&
  Object.values(onNodes).every(({ staged, published }) => isEmpty(staged) && isEmpty(published))

export const isEmpty = (record: object) => Object.keys(record).length === 0
