// The door of the directory plugin.
export { DIRECTORY_PROVISIONER, type DirectoryPluginOptions, openDirectoryPlugin } from './directory-plugin.ts'
export { openRoot, type Root } from './root.ts'
