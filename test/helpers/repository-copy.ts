// Copies the sources of this repository, so that a test can build and pack them while other tests use dist/.
import { cp, mkdir, symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const NAMES = [
  ...['bin', 'src', 'bench', 'test', 'scripts', 'docs', 'examples', 'packages', 'Dockerfile', 'LICENSE'],
  ...[
    'package.json',
    'package-lock.json',
    'tsconfig.json',
    'README.md',
    'ARCHITECTURE.md',
    'CHANGELOG.md',
    'CONTRIBUTING.md',
  ],
]

export async function copyRepository(targetDir: string): Promise<void> {
  await mkdir(targetDir, { recursive: true })
  for (const name of NAMES) {
    await cp(join(ROOT, name), join(targetDir, name), {
      recursive: true,
      filter: (path) => !/\/(node_modules|dist)$/.test(path),
    })
  }
  await symlink(join(ROOT, 'node_modules'), join(targetDir, 'node_modules'))
}
