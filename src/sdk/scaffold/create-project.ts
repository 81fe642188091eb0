// Creates a provisioner project from the template and replaces the names in it. The template is itself a complete project.
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { UsageError } from '../../base/usage-error.ts'
import { checkPlugin } from '../../controllers/provisioning/plugin/check-plugin.ts'

export interface ProjectOptions {
  /** Must be empty or not exist. */
  readonly directory: string
  /** The name of the provisioner in storage classes, such as `example.com/disks`. */
  readonly name: string
  /** The version of @stowage/provisioner on which the project depends. */
  readonly sdkVersion: string
  /** The folder of the template. */
  readonly template: URL
}

/** The names in the template. */
const TEMPLATE_NAME = 'example.com/disks'
const TEMPLATE_PACKAGE = 'disks-provisioner'
const TEMPLATE_CLASS = 'disks-class'
const TEMPLATE_SDK_VERSION = '^0.0.0'
/** npm does not publish files named .gitignore. */
const GITIGNORE = 'gitignore'

export async function createProject({ directory, name, sdkVersion, template }: ProjectOptions): Promise<void> {
  checkName(name)
  const existingFiles = await readdir(directory).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return []
    throw error
  })
  if (existingFiles.length > 0) {
    throw new UsageError(`The directory ${directory} is not empty. Name a directory that is empty or does not exist.`)
  }
  const shortName = name.slice(name.indexOf('/') + 1).replaceAll(/[._]/g, '-')
  const folder = fileURLToPath(template)
  for (const path of await listFiles(folder)) {
    const text = await readFile(join(folder, path), 'utf8')
    const targetPath = join(directory, path === GITIGNORE ? '.gitignore' : path)
    await mkdir(dirname(targetPath), { recursive: true })
    await writeFile(
      targetPath,
      text
        .replaceAll(TEMPLATE_NAME, name)
        .replaceAll(TEMPLATE_PACKAGE, `${shortName}-provisioner`)
        .replaceAll(TEMPLATE_CLASS, shortName)
        .replaceAll(TEMPLATE_SDK_VERSION, `^${sdkVersion}`),
    )
  }
}

function checkName(name: string): void {
  try {
    checkPlugin({ name, provision: () => Promise.reject(), delete: () => Promise.reject() })
  } catch (error) {
    throw new UsageError(`${(error as Error).message} Set the name with --name.`)
  }
}

async function listFiles(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true })
  return entries
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(folder.length))
    .sort()
}
