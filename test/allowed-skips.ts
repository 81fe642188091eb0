// Lists what tests need from the machine, and which of it a machine may lack. Tests that use loop devices, mounts or cgroups
// ask skipReason. With CI=true only a need with `mayLack` is skipped, and only if its probe fails; every other test
// runs and fails if the machine cannot run it.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { systemClock } from '../src/base/clock.ts'
import { type Ability, type HostFacts, probeHost } from '../src/host/index.ts'

interface Need {
  readonly name: string
  readonly probe: (facts: HostFacts) => Ability
  /** Why a suitable machine may lack this: then its tests are skipped in CI too. */
  readonly mayLack?: string
  /** Restricts `mayLack` to some machines. */
  readonly mayLackWhen?: (facts: HostFacts) => boolean
}

/** A machine has one version of cgroups. If it has neither, the tests of both run in CI and fail. */
const hasOtherVersion = (facts: HostFacts) => facts.limits.version !== 'none'

export const NEEDS = {
  loop: { name: 'loop devices', probe: (facts) => facts.canLoop },
  mount: { name: 'mounting a file system', probe: (facts) => facts.canMount },
  xfs: { name: 'xfs', probe: (facts) => facts.filesystems.xfs },
  ext4: { name: 'ext4', probe: (facts) => facts.filesystems.ext4 },
  limits: {
    name: 'limits on IO',
    probe: ({ limits }) => (limits.version === 'none' ? { yes: false, because: limits.because } : { yes: true }),
  },
  ext4OnlineGrowth: {
    name: 'growing a mounted ext4',
    probe: (facts) => facts.canGrowExt4Online,
    mayLack:
      'the kernel demands CAP_SYS_RESOURCE, which containers and small virtual machines often withhold from root',
  },
  ext4OnlineGrowthRefused: {
    name: 'being refused the growth of a mounted ext4',
    probe: ({ canGrowExt4Online }) =>
      canGrowExt4Online.yes ? { yes: false, because: 'CAP_SYS_RESOURCE is there' } : { yes: true },
    mayLack: 'with CAP_SYS_RESOURCE nothing is refused, and the growth itself is tested instead',
  },
  limitsV1: {
    name: 'blkio of cgroup v1',
    probe: ({ limits }) => onlyVersion('v1', limits),
    mayLack: 'the io controller belongs to one hierarchy at a time: with v2 there is no blkio, and io.max is tested',
    mayLackWhen: hasOtherVersion,
  },
  limitsV2: {
    name: 'io.max of cgroup v2',
    probe: ({ limits }) => onlyVersion('v2', limits),
    mayLack: 'the io controller belongs to one hierarchy at a time: with v1 there is no io.max, and blkio is tested',
    mayLackWhen: hasOtherVersion,
  },
} as const satisfies Record<string, Need>

function onlyVersion(version: 'v1' | 'v2', limits: HostFacts['limits']): Ability {
  if (limits.version === version) return { yes: true }
  return {
    yes: false,
    because: limits.version === 'none' ? limits.because : `this machine has cgroup ${limits.version}`,
  }
}

/** The facts of this machine, with a pool in the directory that tests use. Probed once per test file. */
export async function probeThisMachine(): Promise<HostFacts> {
  const poolDir = mkdtempSync(join(tmpdir(), 'stowage-facts-'))
  try {
    return await probeHost({ poolDir, clock: systemClock() })
  } finally {
    rmSync(poolDir, { recursive: true, force: true })
  }
}

/** Why tests that need all of these are skipped; undefined if they run. */
export function skipReason(
  facts: HostFacts,
  needs: readonly (keyof typeof NEEDS)[],
  isCi = Boolean(process.env.CI),
): string | undefined {
  for (const key of needs) {
    const need: Need = NEEDS[key]
    const ability = need.probe(facts)
    if (ability.yes) continue
    const isAllowed = need.mayLack !== undefined && (need.mayLackWhen?.(facts) ?? true)
    if (!isCi || isAllowed) return `${need.name}: ${ability.because}`
  }
  return undefined
}
