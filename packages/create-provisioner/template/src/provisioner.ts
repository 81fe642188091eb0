// Creates, expands and deletes volumes. In this template they are directories: replace the file operations with calls to
// your storage.
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { defineProvisioner, type ProvisionedVolume } from '@stowage/provisioner'

export function createDirectoryProvisioner(root: string) {
  return defineProvisioner({
    name: 'example.com/disks',

    async provision({ volumeName, sizeBytes }) {
      // A repeated request must return the volume that the first one created.
      const existing = await find(volumeName)
      if (existing) return existing
      await mkdir(join(root, volumeName), { recursive: true })
      await writeFile(sizeFile(volumeName), `${sizeBytes}`)
      return volumeOf(volumeName, sizeBytes)
    },

    async delete({ name, source }) {
      if (source.hostPath?.path !== join(root, name)) throw new Error(`${name} is not a volume of this provisioner.`)
      await rm(join(root, name), { recursive: true, force: true })
      await rm(sizeFile(name), { force: true })
    },

    async expand({ volume: { name }, sizeBytes }) {
      const existing = await find(name)
      if (!existing) throw new Error(`${name} is not a volume of this provisioner.`)
      // A repeated request, or a smaller one: a volume never shrinks.
      if (existing.sizeBytes >= sizeBytes) return existing
      await writeFile(sizeFile(name), `${sizeBytes}`)
      return { sizeBytes }
    },

    find: ({ volumeName }) => find(volumeName),
    owns: ({ name, source }) => source.hostPath?.path === join(root, name),
  })

  async function find(volumeName: string): Promise<ProvisionedVolume | undefined> {
    const size = await readFile(sizeFile(volumeName), 'utf8').catch(() => undefined)
    return size ? volumeOf(volumeName, BigInt(size)) : undefined
  }

  function volumeOf(volumeName: string, sizeBytes: bigint): ProvisionedVolume {
    return { sizeBytes, source: { hostPath: { path: join(root, volumeName), type: 'Directory' } } }
  }

  function sizeFile(volumeName: string): string {
    return join(root, `.${volumeName}.size`)
  }
}
