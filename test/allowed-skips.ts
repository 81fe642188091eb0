// Lists the host features that tests need. In CI, a test is skipped only if a feature with `optionalReason` is missing.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { systemClock } from '../src/base/clock.ts'
import { type Ability, type HostFacts, probeHost } from '../src/host/index.ts'

interface Need {
  readonly name: string
  readonly probe: (facts: HostFacts) => Ability
  /** The reason why a suitable machine may lack the feature. Its tests are then skipped in CI too. */
  readonly optionalReason?: string
  /** Restricts `optionalReason` to machines for which this returns true. */
  readonly isOptional?: (facts: HostFacts) => boolean
}

/** Whether the machine can limit IO with some version of cgroups. If it cannot, the tests of both versions run in CI and fail. */
const hasAnyCgroupVersion = (facts: HostFacts) => facts.limits.version !== 'none'

export const NEEDS = {
  loop: { name: 'loop devices', probe: (facts) => facts.canLoop },
  mount: { name: 'mounting a file system', probe: (facts) => facts.canMount },
  xfs: { name: 'xfs', probe: (facts) => facts.filesystems.xfs },
  ext4: { name: 'ext4', probe: (facts) => facts.filesystems.ext4 },
  limits: {
    name: 'limits on IO',
    probe: ({ limits }) =>
      limits.version === 'none' ? { available: false, message: limits.message } : { available: true },
  },
  ext4OnlineGrowth: {
    name: 'growing a mounted ext4',
    probe: (facts) => facts.canGrowExt4Online,
    optionalReason:
      'the kernel requires CAP_SYS_RESOURCE, which containers and small virtual machines often withhold from root',
  },
  ext4OnlineGrowthRefused: {
    name: 'rejection of the growth of a mounted ext4',
    probe: ({ canGrowExt4Online }) =>
      canGrowExt4Online.available
        ? { available: false, message: 'the process has CAP_SYS_RESOURCE' }
        : { available: true },
    optionalReason: 'with CAP_SYS_RESOURCE the growth succeeds, and its own test runs instead',
  },
  limitsV1: {
    name: 'blkio of cgroup v1',
    probe: ({ limits }) => checkCgroupVersion('v1', limits),
    optionalReason:
      'the io controller belongs to one hierarchy at a time: with v2 there is no blkio, and io.max is tested',
    isOptional: hasAnyCgroupVersion,
  },
  limitsV2: {
    name: 'io.max of cgroup v2',
    probe: ({ limits }) => checkCgroupVersion('v2', limits),
    optionalReason:
      'the io controller belongs to one hierarchy at a time: with v1 there is no io.max, and blkio is tested',
    isOptional: hasAnyCgroupVersion,
  },
} as const satisfies Record<string, Need>

function checkCgroupVersion(version: 'v1' | 'v2', limits: HostFacts['limits']): Ability {
  if (limits.version === version) return { available: true }
  return {
    available: false,
    message: limits.version === 'none' ? limits.message : `this machine has cgroup ${limits.version}`,
  }
}

/** Probes this machine, with a pool in the temporary directory. Call once per test file. */
export async function probeThisMachine(): Promise<HostFacts> {
  const poolDir = mkdtempSync(join(tmpdir(), 'stowage-facts-'))
  try {
    return await probeHost({ poolDir, clock: systemClock() })
  } finally {
    rmSync(poolDir, { recursive: true, force: true })
  }
}

/** Returns why tests that need these features are skipped, or undefined if they run. */
export function skipReason(
  facts: HostFacts,
  needs: readonly (keyof typeof NEEDS)[],
  isCi = Boolean(process.env.CI),
): string | undefined {
  for (const key of needs) {
    const need: Need = NEEDS[key]
    const ability = need.probe(facts)
    if (ability.available) continue
    const isAllowed = need.optionalReason !== undefined && (need.isOptional?.(facts) ?? true)
    if (!isCi || isAllowed) return `${need.name}: ${ability.message}`
  }
  return undefined
}
