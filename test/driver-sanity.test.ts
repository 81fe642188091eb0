// Runs csi-sanity against the built driver: with loop volumes, and as an unprivileged user with directories.
import { describe, expect, it } from 'vitest'
import { probeThisMachine, skipReason } from './allowed-skips.ts'
import { findCsiSanity, runCsiSanity } from './helpers/csi-sanity.ts'
import { startLocalDriver } from './helpers/local-driver.ts'

const NO_CONTROLLER_PUBLISH = 'local volumes are attached when they are staged, so there is no controller publish'
const NO_VOLUME_HEALTH =
  'alpha, newer than the published protocol; conditions are in ControllerGetVolume and NodeGetVolumeStats'

/** Specs that csi-sanity may skip: the printed reason, and why the skip is correct. Any other skip fails the test. */
const ALLOWED_SKIPS: Readonly<Record<string, string>> = {
  'ControllerPublishVolume not supported': NO_CONTROLLER_PUBLISH,
  'ControllerUnpublishVolume not supported': NO_CONTROLLER_PUBLISH,
  'Controller Publish, UnpublishVolume not supported': NO_CONTROLLER_PUBLISH,
  'GroupControllerService not supported': 'the driver does not support group snapshots',
  'SNAPSHOT_ACCESSIBILITY_CONSTRAINTS not supported': 'a snapshot is on the node of its volume; alpha in the protocol',
  'ControllerListVolumeHealth not supported': NO_VOLUME_HEALTH,
  'ControllerGetVolumeHealth not supported': NO_VOLUME_HEALTH,
  'NodeGetVolumeHealth not supported': NO_VOLUME_HEALTH,
  'NodeGetStorageHealth not supported': NO_VOLUME_HEALTH,
  pending: 'the suite has disabled the spec about pages of changing volumes; driver-contract.test.ts covers it',
}

const SPECS_PASSED_MIN = 75
const FLAGS = ['--csi.testvolumesize=314572800', '--csi.testvolumeexpandsize=419430400']
const NOBODY = 65_534

const facts = await probeThisMachine()
const sanity = await findCsiSanity()
const sanitySkipMessage = 'missing' in sanity && !process.env.CI ? sanity.missing : undefined
const loopSkip = sanitySkipMessage ?? skipReason(facts, ['loop', 'mount', 'xfs'])

describe('csi-sanity', () => {
  it.skipIf(loopSkip)(`SYS-6 passes with loop volumes${loopSkip ? ` (${loopSkip})` : ''}`, async () => {
    await expectConformance({ backend: 'loop', flags: ['--pool-size', '20Gi', '--workload-cgroup', '/'] })
  })

  it.skipIf(loopSkip)(`SYS-6 passes with block volumes${loopSkip ? ` (${loopSkip})` : ''}`, async () => {
    await expectConformance({
      backend: 'loop',
      flags: ['--pool-size', '20Gi'],
      sanityFlags: ['--csi.testvolumeaccesstype=block'],
    })
  })

  it.skipIf(loopSkip)(
    `SYS-6 passes with sizes below the minimum of xfs, except for a limit below it${loopSkip ? ` (${loopSkip})` : ''}`,
    async () => {
      await expectConformance({
        backend: 'loop',
        flags: ['--pool-size', '20Gi'],
        sanityFlags: ['--csi.testvolumesize=134217728', '--csi.testvolumeexpandsize=419430400'],
        allowedFailure: 'limit_bytes is 128Mi', // one spec sets a limit below the minimum, which must be rejected
      })
    },
  )

  it.skipIf(sanitySkipMessage)(
    `SYS-6 passes with directories as an unprivileged user${sanitySkipMessage ? ` (${sanitySkipMessage})` : ''}`,
    async () => {
      const isRoot = process.getuid?.() === 0
      await expectConformance({
        backend: 'directory',
        flags: ['--pool-size', '20Gi'],
        mutableParameters: { iops: '0', throughput: '0' }, // a directory cannot be limited
        ...(isRoot ? { uid: NOBODY } : {}),
      })
    },
  )
})

interface ConformanceRun {
  readonly backend: string
  readonly flags: readonly string[]
  readonly sanityFlags?: readonly string[]
  readonly mutableParameters?: Readonly<Record<string, string>>
  readonly uid?: number
  /** Text of a failure that is expected. */
  readonly allowedFailure?: string
}

const LIMITS = { iops: '500', throughput: '50' }

async function expectConformance({
  backend,
  flags,
  sanityFlags = [],
  mutableParameters = LIMITS,
  uid,
  allowedFailure,
}: ConformanceRun): Promise<void> {
  if ('missing' in sanity) throw new Error(sanity.missing)
  const driver = await startLocalDriver({ flags, ...(uid === undefined ? {} : { uid }) })
  try {
    expect(driver.ready.backend).toBe(backend) // the driver detects its backend
    const result = await runCsiSanity({
      program: sanity.program,
      endpoint: driver.endpoint,
      flags: [...FLAGS, ...sanityFlags],
      mutableParameters,
      ...(uid === undefined ? {} : { uid }),
    })
    const isAllowed = (failure: string) => allowedFailure !== undefined && failure.includes(allowedFailure)
    expect(result.failed.filter((failure) => !isAllowed(failure))).toEqual([])
    expect(result.passed).toBeGreaterThanOrEqual(SPECS_PASSED_MIN)
    const unexplainedSkips = result.skipped.filter(({ reason }) => !(reason in ALLOWED_SKIPS))
    expect(unexplainedSkips).toEqual([])
    expect((await driver.csi.controller.listVolumes({})).entries).toEqual([])
    expect(await driver.leftovers()).toEqual([])
  } finally {
    await driver.dispose()
  }
}
