import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createProject } from './create-project.ts'

const template = new URL('../../../packages/create-provisioner/template/', import.meta.url)
let dir: string
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'stowage-scaffold-'))
})
afterEach(() => rm(dir, { recursive: true, force: true }))

const create = (name: string, directory = join(dir, 'project')) =>
  createProject({ directory, name, sdkVersion: '1.2.3', template })

describe('createProject', () => {
  it('replaces every name of the template', async () => {
    await create('storage.example.org/fast_disks')
    const files = await readdir(join(dir, 'project'), { recursive: true, withFileTypes: true })
    const texts = await Promise.all(
      files.filter((file) => file.isFile()).map((file) => readFile(join(file.parentPath, file.name), 'utf8')),
    )
    expect(texts.filter((text) => /example\.com\/disks|disks-class|0\.0\.0/.test(text))).toEqual([])
    const { name, dependencies } = JSON.parse(await readFile(join(dir, 'project', 'package.json'), 'utf8'))
    expect(name).toBe('fast-disks-provisioner')
    expect(dependencies).toEqual({ '@stowage/provisioner': '^1.2.3' })
    expect(await readFile(join(dir, 'project', 'manifests', 'class.yaml'), 'utf8')).toContain(
      'provisioner: storage.example.org/fast_disks',
    )
    expect(files.map((file) => file.name)).toContain('.gitignore')
  })

  it('rejects a name that no provisioner can have, and creates nothing', async () => {
    await expect(create('Disks')).rejects.toThrow('"Disks" cannot be the name of a provisioner')
    await expect(create('kubernetes.io/disks')).rejects.toThrow('not a domain of Kubernetes. Set the name with --name.')
    expect(await readdir(dir)).toEqual([])
  })

  it('leaves a directory with files unchanged, and uses an empty one', async () => {
    const directory = join(dir, 'used')
    await mkdir(directory)
    await writeFile(join(directory, 'notes.txt'), 'x')
    await expect(create('example.org/disks', directory)).rejects.toThrow('is not empty')
    expect(await readdir(directory)).toEqual(['notes.txt'])
    await rm(join(directory, 'notes.txt'))
    await create('example.org/disks', directory)
    expect(await readdir(directory)).toContain('package.json')
  })
})
