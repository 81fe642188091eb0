// csi-sanity against the built driver, with loop volumes and, as an unprivileged user, with directories.
import { describe, expect, it } from 'vitest'
import { probeThisMachine, skipReason } from './allowed-skips.ts'
import { findCsiSanity, runCsiSanity } from './helpers/csi-sanity.ts'
import { startLocalDriver } from './helpers/local-driver.ts'

const BY_STAGING = 'local volumes are attached when they are staged, so there is no controller publish'
const BY_CONDITION =
  'alpha, newer than the published protocol; conditions are in ControllerGetVolume and NodeGetVolumeStats'

/** What csi-sanity skips, by the reason it prints, and why that is right. Any other skip is a failure. */
const SKIPPED: Readonly<Record<string, string>> = {
  'ControllerPublishVolume not supported': BY_STAGING,
  'ControllerUnpublishVolume not supported': BY_STAGING,
  'Controller Publish, UnpublishVolume not supported': BY_STAGING,
  'GroupControllerService not supported': 'the driver takes no snapshots of groups of volumes',
  'SNAPSHOT_ACCESSIBILITY_CONSTRAINTS not supported': 'a snapshot is on the node of its volume; alpha in the protocol',
  'ControllerListVolumeHealth not supported': BY_CONDITION,
  'ControllerGetVolumeHealth not supported': BY_CONDITION,
  'NodeGetVolumeHealth not supported': BY_CONDITION,
  'NodeGetStorageHealth not supported': BY_CONDITION,
  pending: 'the suite has switched this spec off: pages while volumes come and go; driver-contract.test.ts has it',
}

const SPECS_PASSED_MIN = 75
const FLAGS = ['--csi.testvolumesize=314572800', '--csi.testvolumeexpandsize=419430400']
const NOBODY = 65_534

const facts = await probeThisMachine()
const sanity = await findCsiSanity()
const missing = 'missing' in sanity && !process.env.CI ? sanity.missing : undefined
const noLoop = missing ?? skipReason(facts, ['loop', 'mount', 'xfs'])

describe('csi-sanity', () => {
  it.skipIf(noLoop)(`SYS-6 passes with loop volumes${noLoop ? ` (${noLoop})` : ''}`, async () => {
    await expectConformance({ backend: 'loop', flags: ['--pool-size', '20Gi', '--workload-cgroup', '/'] })
  })

  it.skipIf(noLoop)(`SYS-6 passes with block volumes${noLoop ? ` (${noLoop})` : ''}`, async () => {
    await expectConformance({
      backend: 'loop',
      flags: ['--pool-size', '20Gi'],
      sanityFlags: ['--csi.testvolumeaccesstype=block'],
    })
  })

  it.skipIf(missing)(
    `SYS-6 passes with directories as an unprivileged user${missing ? ` (${missing})` : ''}`,
    async () => {
      const isRoot = process.getuid?.() === 0
      await expectConformance({
        backend: 'directory',
        flags: ['--pool-size', '20Gi'],
        ...(isRoot ? { uid: NOBODY } : {}),
      })
    },
  )
})

interface Conformance {
  readonly backend: string
  readonly flags: readonly string[]
  readonly sanityFlags?: readonly string[]
  readonly uid?: number
}

async function expectConformance({ backend, flags, sanityFlags = [], uid }: Conformance): Promise<void> {
  if ('missing' in sanity) throw new Error(sanity.missing)
  const driver = await startLocalDriver({ flags, ...(uid === undefined ? {} : { uid }) })
  try {
    expect(driver.ready.backend).toBe(backend) // detected without --backend
    const result = await runCsiSanity({
      program: sanity.program,
      endpoint: driver.endpoint,
      flags: [...FLAGS, ...sanityFlags],
      mutableParameters: { iops: '500', throughput: '50' },
      ...(uid === undefined ? {} : { uid }),
    })
    expect(result.failed).toEqual([])
    expect(result.passed).toBeGreaterThanOrEqual(SPECS_PASSED_MIN)
    const unexplained = result.skipped.filter(({ reason }) => !(reason in SKIPPED))
    expect(unexplained).toEqual([])
    expect((await driver.csi.controller.listVolumes({})).entries).toEqual([])
    expect(await driver.traces()).toEqual([])
  } finally {
    await driver.dispose()
  }
}
