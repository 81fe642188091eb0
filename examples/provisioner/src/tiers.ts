// Provisions volumes as directories on one of two disks, "fast" and "slow". A class can select the tier with a parameter;
// otherwise a claim can select it with a selector. Each tier has a budget of bytes. A small file per volume contains its
// size.
import { mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import {
  defineProvisioner,
  InfeasibleError,
  NotCreatedError,
  type ProvisionedVolume,
  parameter,
} from '@stowage/provisioner'

export const TIERS = ['fast', 'slow'] as const
export type Tier = (typeof TIERS)[number]

export interface Disk {
  readonly root: string
  /** Maximum total size of the volumes on the disk. */
  readonly budgetBytes: bigint
}

const TIER_LABEL = 'example.com/tier'

export function tiersProvisioner(disks: Readonly<Record<Tier, Disk>>) {
  const runExclusively = createMutex()

  return defineProvisioner({
    name: 'example.com/tiers',
    parameters: {
      tier: parameter.choice(TIERS, { doc: 'disk of the volumes; if absent, the claim can select it' }),
      reserve: parameter.bytes({ doc: 'bytes of the budget to keep free', default: 0n }),
    },
    labels: { [TIER_LABEL]: TIERS },
    accessModes: ['ReadWriteOnce', 'ReadWriteOncePod', 'ReadWriteMany'],

    provision: ({ volumeName, sizeBytes, parameters, labels }) =>
      runExclusively(async () => {
        // An earlier attempt may have created the volume with other parameters, because the class was replaced.
        const existing = await findExisting(volumeName)
        if (existing) return createDirectory(existing.tier, volumeName, existing.sizeBytes)
        const acceptedTiers = labels[TIER_LABEL]
        const tier = parameters.tier ?? acceptedTiers[0]
        if (tier === undefined || !acceptedTiers.includes(tier)) {
          throw new InfeasibleError(
            `The class provisions ${tier} volumes, but the selector of the claim accepts ${acceptedTiers.join(', ')} only.`,
          )
        }
        const disk = disks[tier]
        const freeBytes = disk.budgetBytes - (await readUsedBytes(disk)) - parameters.reserve
        if (sizeBytes > freeBytes) {
          throw new NotCreatedError(
            `The claim requests ${sizeBytes} bytes, but only ${freeBytes} bytes are free on the ${tier} disk for this class.`,
          )
        }
        await writeAtomically(sizeFile(disk, volumeName), `${sizeBytes}`)
        return createDirectory(tier, volumeName, sizeBytes)
      }),

    expand: ({ volume: { name }, sizeBytes }) =>
      runExclusively(async () => {
        const existing = await findExisting(name)
        if (!existing) throw new InfeasibleError(`${name} is not a volume of this provisioner.`)
        // A repeated request, or a smaller one: a volume never shrinks.
        if (existing.sizeBytes >= sizeBytes) return { sizeBytes: existing.sizeBytes }
        const disk = disks[existing.tier]
        const freeBytes = disk.budgetBytes - (await readUsedBytes(disk))
        const addedBytes = sizeBytes - existing.sizeBytes
        if (addedBytes > freeBytes) {
          throw new NotCreatedError(
            `${addedBytes} more bytes are requested, but only ${freeBytes} bytes are free on the ${existing.tier} disk.`,
          )
        }
        await writeAtomically(sizeFile(disk, name), `${sizeBytes}`)
        return { sizeBytes }
      }),

    find: ({ volumeName }) =>
      runExclusively(async () => {
        const existing = await findExisting(volumeName)
        return existing && volumeOn(existing.tier, volumeName, existing.sizeBytes)
      }),

    async delete({ name, source }) {
      const disk = diskOf(name, source.hostPath?.path)
      if (!disk) throw new Error(`${source.hostPath?.path} is not a volume of this provisioner.`)
      // Remove the size file last, so that a retry after a failure still finds the volume.
      await rm(join(disk.root, name), { recursive: true, force: true })
      await runExclusively(() => rm(sizeFile(disk, name), { force: true }))
    },

    owns: ({ name, source }) => diskOf(name, source.hostPath?.path) !== undefined,
  })

  async function findExisting(volumeName: string): Promise<{ tier: Tier; sizeBytes: bigint } | undefined> {
    for (const tier of TIERS) {
      const sizeBytes = (await readSizes(disks[tier])).get(volumeName)
      if (sizeBytes !== undefined) return { tier, sizeBytes }
    }
    return undefined
  }

  async function createDirectory(tier: Tier, volumeName: string, sizeBytes: bigint): Promise<ProvisionedVolume> {
    await mkdir(join(disks[tier].root, volumeName), { recursive: true })
    return volumeOn(tier, volumeName, sizeBytes)
  }

  function volumeOn(tier: Tier, volumeName: string, sizeBytes: bigint): ProvisionedVolume {
    const path = join(disks[tier].root, volumeName)
    return { sizeBytes, source: { hostPath: { path, type: 'Directory' } }, labels: { [TIER_LABEL]: tier } }
  }

  /** Returns the disk of a volume. The path must equal the expected one, so that no other directory can be deleted. */
  function diskOf(name: string, path: string | undefined): Disk | undefined {
    if (!/^[a-z0-9][-a-z0-9]*$/.test(name)) return undefined
    return TIERS.map((tier) => disks[tier]).find(({ root }) => path === join(root, name))
  }
}

const sizeFile = ({ root }: Disk, volumeName: string): string => join(root, `.${volumeName}.size`)

const readUsedBytes = async (disk: Disk): Promise<bigint> =>
  [...(await readSizes(disk)).values()].reduce((sum, bytes) => sum + bytes, 0n)

/** Returns the sizes by volume name, and removes partially written files. Callers must hold the mutex. */
async function readSizes({ root }: Disk): Promise<Map<string, bigint>> {
  await mkdir(root, { recursive: true })
  const sizes = new Map<string, bigint>()
  for (const file of await readdir(root)) {
    const [, volumeName, partialSuffix] = /^\.(.+)\.size(\.tmp)?$/.exec(file) ?? []
    if (partialSuffix) await rm(join(root, file), { force: true })
    else if (volumeName) sizes.set(volumeName, BigInt(await readFile(join(root, file), 'utf8')))
  }
  return sizes
}

/** Writes a file so that a crash leaves it either unchanged or complete. */
async function writeAtomically(path: string, text: string): Promise<void> {
  await writeFile(`${path}.tmp`, text, { flush: true })
  await rename(`${path}.tmp`, path)
}

/** Returns a function that runs calls one after the other, so that two calls do not use the same free bytes. */
function createMutex() {
  let last: Promise<unknown> = Promise.resolve()
  return <T>(run: () => Promise<T>): Promise<T> => {
    const result = last.then(run, run)
    last = result
    return result
  }
}
