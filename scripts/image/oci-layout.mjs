// Writes an OCI image layout as a tarball, reproducibly: the same folders give the same bytes. Needs GNU tar.
import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'

const GZIP_LEVEL = 6

/**
 * Each layer has the `folder` of its files, their `owner` (a user and group ID), and optionally the `paths` in the folder to
 * include, by default all. `created` is the time of the image and of all files, in seconds.
 */
export async function writeOciTarball({ file, tag, layers, config, architecture, created }) {
  const dir = await mkdtemp(join(tmpdir(), 'stowage-oci-'))
  try {
    await mkdir(join(dir, 'blobs', 'sha256'), { recursive: true })
    const blobs = createBlobs(join(dir, 'blobs', 'sha256'))
    const diffIds = []
    const layerDescriptors = []
    for (const [index, layer] of layers.entries()) {
      const tarball = join(dir, `layer-${index}.tar`)
      await writeTar(tarball, layer, created)
      const content = await readFile(tarball)
      await rm(tarball)
      diffIds.push(digestOf(content))
      const compressed = await promisify(gzip)(content, { level: GZIP_LEVEL })
      layerDescriptors.push(await blobs.add('application/vnd.oci.image.layer.v1.tar+gzip', compressed))
    }
    const time = new Date(created * 1_000).toISOString()
    const configDescriptor = await blobs.addJson('application/vnd.oci.image.config.v1+json', {
      created: time,
      architecture,
      os: 'linux',
      config,
      rootfs: { type: 'layers', diff_ids: diffIds },
      history: layers.map(({ comment }) => ({ created: time, created_by: comment })),
    })
    const manifest = await blobs.addJson('application/vnd.oci.image.manifest.v1+json', {
      schemaVersion: 2,
      mediaType: 'application/vnd.oci.image.manifest.v1+json',
      config: configDescriptor,
      layers: layerDescriptors,
      annotations: config.Labels,
    })
    await writeFile(join(dir, 'oci-layout'), JSON.stringify({ imageLayoutVersion: '1.0.0' }))
    const annotations = { 'org.opencontainers.image.ref.name': tag }
    const index = {
      schemaVersion: 2,
      mediaType: 'application/vnd.oci.image.index.v1+json',
      manifests: [{ ...manifest, platform: { architecture, os: 'linux' }, annotations }],
    }
    await writeFile(join(dir, 'index.json'), JSON.stringify(index))
    await writeTar(file, { folder: dir, owner: 0 }, created)
    return manifest.digest
  } finally {
    await rm(dir, { recursive: true, force: true })
  }
}

function createBlobs(folder) {
  const add = async (mediaType, content) => {
    const digest = digestOf(content)
    await writeFile(join(folder, digest.slice('sha256:'.length)), content)
    return { mediaType, digest, size: content.length }
  }
  return { add, addJson: (mediaType, value) => add(mediaType, Buffer.from(JSON.stringify(value))) }
}

const digestOf = (content) => `sha256:${createHash('sha256').update(content).digest('hex')}`

async function writeTar(file, { folder, owner, paths }, mtime) {
  const flags = [
    '--sort=name',
    '--format=gnu',
    '--numeric-owner',
    `--owner=${owner}`,
    `--group=${owner}`,
    `--mtime=@${mtime}`,
  ]
  const names = paths ?? (await readdir(folder)).sort()
  await promisify(execFile)('tar', [...flags, '-cf', file, '-C', folder, ...names])
}
