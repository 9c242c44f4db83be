package a

import _ "image/gif"
