// Runs the provisioner. Environment variables configure the disks, and flags everything else (see --help).
import { resolve } from 'node:path'
import { runProvisioner } from '@stowage/provisioner'
import { type Disk, type Tier, tiersProvisioner } from './tiers.js'

const GIB = 1024n ** 3n

const readDisk = (tier: Tier, gib: bigint): Disk => ({
  root: resolve(process.env[`${tier.toUpperCase()}_ROOT`] ?? `./volumes/${tier}`),
  budgetBytes: BigInt(process.env[`${tier.toUpperCase()}_GIB`] ?? gib) * GIB,
})

await runProvisioner(tiersProvisioner({ fast: readDisk('fast', 10n), slow: readDisk('slow', 100n) }))
