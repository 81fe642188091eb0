// The program: where the disks are comes from the environment, everything else from flags (--help lists them).
import { resolve } from 'node:path'
import { runProvisioner } from 'stowage/provisioner'
import { type Disk, type Tier, tiersProvisioner } from './tiers.js'

const GIB = 1024n ** 3n

const disk = (tier: Tier, gib: bigint): Disk => ({
  root: resolve(process.env[`${tier.toUpperCase()}_ROOT`] ?? `./volumes/${tier}`),
  budgetBytes: BigInt(process.env[`${tier.toUpperCase()}_GIB`] ?? gib) * GIB,
})

await runProvisioner(tiersProvisioner({ fast: disk('fast', 10n), slow: disk('slow', 100n) }))
